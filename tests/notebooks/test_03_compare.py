"""Notebook 03 headless, with few sequences and a moment a strategy; and a stored run shown again."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from labkit.batching.strategies import Strategy
from labkit.errors import LabkitError, NotebookError
from labkit.nbrun import run_notebook

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "03_compare.ipynb"
pytestmark = pytest.mark.notebook

SMALL = {"preset": "cdnow", "sequences": 600, "rows": 64, "token_budget": 2048, "seconds": 0.05, "gpu": "A100-40"}


def outputs_of(executed: Path) -> list:
    notebook = nbformat.read(executed, as_version=4)
    assert "widgets" not in notebook.metadata
    return [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]


def texts_of(outputs: list) -> str:
    return "\n".join(o.data["text/plain"] for o in outputs if "data" in o)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "out"
    run_notebook(NOTEBOOK, {**SMALL, "calibrate": False}, folder)
    return folder


def test_it_leaves_the_table_the_picture_and_the_records(out: Path) -> None:
    names = [NOTEBOOK.name, "compare_table.html", "records.json", "time_split.html"]
    assert sorted(p.name for p in out.iterdir()) == names
    assert (out / NOTEBOOK.name).stat().st_size < 1_000_000
    table = (out / "compare_table.html").read_text(encoding="utf-8")
    assert all(f'<tr data-strategy="{strategy}"' in table for strategy in Strategy)
    assert "The DIN experiment" in table
    assert "plotly" in (out / "time_split.html").read_text(encoding="utf-8")
    records = json.loads((out / "records.json").read_text(encoding="utf-8"))
    assert [r["strategy"] for r in records["strategies"]] == list(Strategy)
    assert len(records["din_experiment"]["strategies"]) == 3


def test_counted_modelled_and_measured_stand_side_by_side(out: Path) -> None:
    outputs = outputs_of(out / NOTEBOOK.name)
    text = texts_of(outputs)
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()[:1]}
    for strategy in ("pad_max", "bucket_budget", "jagged"):
        assert "~" in lines[strategy]
        assert "*" in lines[strategy]
    assert "rnn_packed: model din does not take the packed_sequence layout" in text
    assert "much padding (more than 30% of the slots are empty)" in text
    assert "Published, the bucketed ways take 0.58 and 0.47 of the padded time; here " in text
    assert sum("application/vnd.plotly.v1+json" in o.data for o in outputs if "data" in o) == 1
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert "events/s, an epoch in" in printed
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]


def test_a_stored_run_is_shown_without_measuring_anything(out: Path, tmp_path: Path) -> None:
    settings = {"records_file": str(out / "records.json"), "gpu": "T4"}
    run_notebook(NOTEBOOK, settings, tmp_path / "again")
    outputs = outputs_of(tmp_path / "again" / NOTEBOOK.name)
    text = texts_of(outputs)
    assert "din, training on T4" in text
    assert "recorded: din, made-up events on cpu" in text
    assert "^" in next(line for line in text.splitlines() if line.startswith("bucket_budget "))
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert "an epoch in" not in printed


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model", "dinn", "din, sasrec, gru4rec, pooled, ctr"),
        ("gpu", "H900", "V100-16, V100-32, T4, A10"),
        ("device", "tpu", "use cpu, cuda or cuda:N"),
        ("strategies", "pad_maxx", "pad_max, pad_recent"),
        ("seconds", -1.0, "seconds must be a number above 0"),
        ("records_file", "no.json", "cannot read 'no.json'"),
        ("lengths_file", "no.csv", "no.csv"),
        ("preset", "nope", "nope"),
    ],
)
def test_a_parameter_that_nothing_could_make_right_is_refused_before_the_kernel_starts(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    with pytest.raises(LabkitError, match=message):
        run_notebook(NOTEBOOK, {name: value}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="token_budget"):
        run_notebook(NOTEBOOK, {"token_budgets": 3}, tmp_path / "out")
