"""Committed notebooks are thin lab reports: one parameters cell, no logic, no outputs."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def faults_of(notebook: dict[str, Any]) -> list[str]:
    """What makes a notebook more than a thin lab report, in words."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    is_parameters = ["parameters" in cell["metadata"].get("tags", []) for cell in code]
    found = [f"{sum(is_parameters)} cells tagged parameters"] if sum(is_parameters) != 1 else []
    if "widgets" in notebook["metadata"]:
        found.append("widget state")
    logic = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While)
    for number, cell in enumerate(code):
        source = "".join(cell["source"])
        if cell["outputs"] or cell["execution_count"] is not None:
            found.append(f"code cell {number} has outputs")
        if not is_parameters[number] and len(source.splitlines()) > 8:
            found.append(f"code cell {number} has over 8 lines")
        if any(isinstance(node, logic) for node in ast.walk(ast.parse(source))):
            found.append(f"code cell {number} holds logic")
    return found


def test_every_notebook_is_a_thin_lab_report() -> None:
    assert NOTEBOOKS
    assert [path.name for path in NOTEBOOKS if not re.fullmatch(r"\d\d(_[a-z0-9]+)+\.ipynb", path.name)] == []
    assert {path.name: faults for path in NOTEBOOKS if (faults := faults_of(json.loads(path.read_text())))} == {}


def code_cell(source: str, *, tags: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> dict[str, Any]:
    metadata = {"tags": list(tags)}
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "outputs": list(outputs),
        "execution_count": None,
    }


PARAMETERS = code_cell("rows: int = 256  # rows\n" * 20, tags=("parameters",))


@pytest.mark.parametrize(
    ("cells", "faults"),
    [
        ([PARAMETERS, code_cell("run(config)")], []),
        ([code_cell("run(config)")], ["0 cells tagged parameters"]),
        ([PARAMETERS, PARAMETERS], ["2 cells tagged parameters"]),
        ([PARAMETERS, code_cell("x = 1", outputs=("1",))], ["code cell 1 has outputs"]),
        ([PARAMETERS, code_cell("x = 1\n" * 9)], ["code cell 1 has over 8 lines"]),
        ([PARAMETERS, code_cell("if x:\n    for y in z:\n        run(y)")], ["code cell 1 holds logic"]),
        ([PARAMETERS, code_cell("class Late: ...")], ["code cell 1 holds logic"]),
    ],
)
def test_the_check_on_notebooks_finds_each_fault(cells: list[dict[str, Any]], faults: list[str]) -> None:
    assert faults_of({"metadata": {}, "cells": cells}) == faults
    assert faults_of({"metadata": {"widgets": {}}, "cells": [PARAMETERS]}) == ["widget state"]
