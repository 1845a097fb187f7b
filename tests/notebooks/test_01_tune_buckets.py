"""Notebook 01 headless, as CI and the container run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from labkit.batching.plan import plan_epoch
from labkit.config import TunedConfig
from labkit.errors import LabkitError, NotebookError
from labkit.nbrun import run_notebook

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "01_tune_buckets.ipynb"
pytestmark = pytest.mark.notebook


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run by the command line."""
    folder = tmp_path_factory.mktemp("run") / "out"
    command = [
        sys.executable,
        "-m",
        "labkit",
        "run",
        str(NOTEBOOK),
        "-p",
        "preset",
        "ml-100k",
        "--out",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_leaves_an_executed_notebook_under_a_megabyte_without_widget_state(out: Path) -> None:
    executed = out / NOTEBOOK.name
    assert executed.stat().st_size < 1_000_000
    notebook = nbformat.read(executed, as_version=4)
    assert "widgets" not in notebook.metadata
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert all(c.execution_count for c in code)
    assert sorted(p.name for p in out.iterdir()) == [NOTEBOOK.name, "strategies.html", "tuned.json"]


def test_it_prints_the_table_and_the_finding(out: Path) -> None:
    notebook = nbformat.read(out / NOTEBOOK.name, as_version=4)
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    texts = [o.data["text/plain"] for o in outputs if "data" in o]
    assert any(t.startswith("strategy") and "bucket_graph" in t for t in texts)
    assert any("application/vnd.plotly.v1+json" in o.data for o in outputs if "data" in o)
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert "bucket_budget leaves 18.1% padding where padding to the longest leaves 85.6%" in printed
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]


def test_what_if_reads_its_tuned_json_and_a_fresh_process_plans_the_same_batches(out: Path) -> None:
    command = [sys.executable, "-m", "labkit", "what-if", str(out / "tuned.json"), "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert report["bucket_edges"] == [35, 66, 112, 168, 236, 307, 414, 737]
    tuned = TunedConfig.load(out / "tuned.json")
    lengths = np.random.default_rng(5).permutation(tuned.length_histogram.expand())
    plan = plan_epoch(lengths, tuned.batch_policy, seed=9, epoch=2)
    code = (
        "import sys, numpy as np, labkit; t = labkit.TunedConfig.load(sys.argv[1]);"
        "h = t.length_histogram.expand(); s = t.sampler(np.random.default_rng(5).permutation(h), seed=9);"
        "s.set_epoch(2); print(len(s), [int(i) for b in s for i in b])"
    )
    fresh = subprocess.run(
        [sys.executable, "-c", code, str(out / "tuned.json")], capture_output=True, text=True, check=True
    )
    assert fresh.stdout.strip() == f"{len(plan)} {plan.order.tolist()}"


def test_generated_lengths_with_a_cap_and_multiples(tmp_path: Path) -> None:
    settings = {"preset": "generated", "sequences": 2000, "longest": 300, "max_length": 128, "length_multiple": 8}
    run_notebook(NOTEBOOK, {**settings, "strategy": "bucket_graph"}, tmp_path / "out")
    tuned = TunedConfig.load(tmp_path / "out" / "tuned.json")
    assert (tuned.batch_policy.strategy, tuned.batch_policy.max_length) == ("bucket_graph", 128)
    assert tuned.length_histogram.sequences == 2000


def test_a_misspelt_parameter_fails_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="bucket"):
        run_notebook(NOTEBOOK, {"bucket": 3}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "dim"}, "model 'dim' does not exist: use one of din, sasrec, gru4rec, pooled, ctr"),
        ({"model": "din", "gpu": "H1000"}, "GPU 'H1000' is not in the table: use one of V100-16"),
        ({"gpu": "H100"}, "gpu H100 needs a model to run there"),
    ],
    ids=["model", "gpu", "gpu without a model"],
)
def test_a_model_or_gpu_that_is_not_there_fails_before_the_kernel_starts(
    tmp_path: Path, given: dict[str, str], message: str
) -> None:
    with pytest.raises(LabkitError, match=message):
        run_notebook(NOTEBOOK, given, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_model_and_a_gpu_add_their_modelled_columns_to_the_table(tmp_path: Path) -> None:
    run_notebook(NOTEBOOK, {"model": "pooled", "gpu": "L4"}, tmp_path / "out")
    text = (tmp_path / "out" / NOTEBOOK.name).read_text()
    assert "modelled: pooled, training on L4, float32" in text
    page = (tmp_path / "out" / "strategies.html").read_text()
    assert 'data-figure="time_s"' in page
    assert 'data-figure="bound"' in page
