"""Notebook 02 headless, with few sequences."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from labkit.batching.strategies import Strategy
from labkit.errors import LabkitError, NotebookError
from labkit.nbrun import run_notebook

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "02_strategies.ipynb"
pytestmark = pytest.mark.notebook


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list:
    out = tmp_path_factory.mktemp("run") / "out"
    settings = {"preset": "ml-100k", "planned_sequences": 500, "trained_sequences": 400, "epochs": 1}
    run_notebook(NOTEBOOK, settings, out)
    executed = out / NOTEBOOK.name
    assert executed.stat().st_size < 1_000_000
    notebook = nbformat.read(executed, as_version=4)
    assert "widgets" not in notebook.metadata
    return [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]


def test_every_strategy_is_planned_and_nothing_goes_over_its_budget(outputs: list) -> None:
    table = next(o.data["text/plain"] for o in outputs if "data" in o and "overshoot" in o.data["text/plain"])
    rows = {line.split()[0]: line for line in table.splitlines()[1:]}
    assert {str(s) for s in Strategy} <= set(rows)
    assert "does not fit" not in table


def test_the_rule_of_thumb_stands_beside_the_hard_budgets(outputs: list) -> None:
    table = next(o.data["text/plain"] for o in outputs if "data" in o and o.data["text/plain"].startswith("way"))
    overshoot = {line.split("  ")[0]: re.split(r" {2,}", line)[-2] for line in table.splitlines()[1:4]}
    assert overshoot.pop("budget // mean length") != "0 %"
    assert overshoot == {"bucket_budget": "0 %", "jagged": "0 %"}


def test_it_draws_four_figures_and_ends_with_a_finding(outputs: list) -> None:
    assert sum("application/vnd.plotly.v1+json" in o.data for o in outputs if "data" in o) == 4
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert "The rule budget // mean length went up to" in printed
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]


def test_a_misspelt_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="epoch"):
        run_notebook(NOTEBOOK, {"epoch": 3}, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("buckets", 0, "buckets must be 1 or more: got 0"),
        ("epochs", 0, "epochs must be 1 or more: got 0"),
        ("token_budget", -1, "token_budget must be 1 or more: got -1"),
        ("preset", "nope", "nope"),
        ("lengths_file", "no.csv", "no.csv"),
    ],
)
def test_a_parameter_out_of_its_range_is_refused_before_the_kernel_starts(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    with pytest.raises(LabkitError, match=message):
        run_notebook(NOTEBOOK, {name: value}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
