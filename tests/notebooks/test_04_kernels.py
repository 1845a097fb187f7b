"""Notebook 04 headless, on the smallest kernel."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from labkit.errors import LabkitError, NotebookError
from labkit.nbrun import run_notebook

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "04_kernels.ipynb"
pytestmark = pytest.mark.notebook
SMALL = {"op": "bin_rows", "preset": "cdnow", "counted_rows": 64, "timed_rows": 200}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "out"
    run_notebook(NOTEBOOK, SMALL, folder)
    return folder


@pytest.fixture(scope="module")
def outputs(out: Path) -> list:
    notebook = nbformat.read(out / NOTEBOOK.name, as_version=4)
    assert "widgets" not in notebook.metadata
    return [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]


def test_it_leaves_the_proof_as_json_and_a_page(out: Path) -> None:
    assert sorted(p.name for p in out.iterdir()) == [NOTEBOOK.name, "kernel_proof.json", "kernel_report.html"]
    assert (out / NOTEBOOK.name).stat().st_size < 1_000_000
    proof = json.loads((out / "kernel_proof.json").read_text())
    assert proof["proof"]["ok"] is True
    assert proof["proof"]["reports"] == []
    assert proof["counts"]["provenance"] == "modelled"
    assert "bin_rows" in (out / "kernel_report.html").read_text()


def test_it_shows_verdict_picture_tables_and_a_finding(outputs: list) -> None:
    texts = [o.data["text/plain"] for o in outputs if "data" in o]
    assert any(text.startswith("bin_rows.cu as bin_rows: proved") for text in texts)
    assert any("lanes" in text and "bin_rows.cu:" in text for text in texts)
    assert any("floor of the bytes" in text for text in texts)
    assert any("application/vnd.plotly.v1+json" in o.data for o in outputs if "data" in o)
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert "bin_rows.cu as bin_rows is proved on" in printed
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]


def test_a_misspelt_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="kernel"):
        run_notebook(NOTEBOOK, {"kernel": "bin_rows"}, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("op", "sort", "there is no op 'sort': expected one of bin_rows, jagged_to_padded"),
        ("dim", 0, "dim must be"),
        ("gpu", "H1000", "H1000"),
        ("source_file", "no.cu", "no.cu"),
        ("lengths_file", "no.csv", "no.csv"),
    ],
)
def test_a_parameter_that_cannot_be_right_is_refused_before_the_kernel_starts(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    with pytest.raises(LabkitError, match=message):
        run_notebook(NOTEBOOK, {name: value}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
