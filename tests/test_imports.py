"""What importing costs: the package root loads nothing, the floors up to batching load NumPy alone."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import labkit
import labkit.batching

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "cupy", "ipywidgets", "anywidget", "plotly", "pydantic", "duckdb", "papermill")
NEEDS_NUMPY_ALONE = [
    "labkit.errors",
    "labkit.jagged",
    "labkit.lengths.generate",
    "labkit.lengths.histogram",
    "labkit.provenance",
    "labkit.units",
    *(module.name for module in pkgutil.walk_packages(labkit.batching.__path__, "labkit.batching.")),
]


def loaded_by(module: str, heavy: tuple[str, ...] = HEAVY, path: Path = ROOT) -> set[str]:
    """Import a module in a fresh interpreter and name the heavy packages that came with it."""
    code = f"import json, sys, {module}; print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_package_root_loads_nothing_heavy() -> None:
    assert loaded_by("labkit", (*HEAVY, "numpy")) == set()


def test_the_check_on_the_package_root_can_fail(tmp_path: Path) -> None:
    # the same check on a root that does what ours must not do
    (tmp_path / "eager.py").write_text("import pydantic, plotly.graph_objects\n")
    assert loaded_by("eager", path=tmp_path) == {"pydantic", "plotly"}


@pytest.mark.parametrize("module", NEEDS_NUMPY_ALONE)
def test_policies_and_histograms_need_numpy_alone(module: str) -> None:
    assert loaded_by(module) == set()


def test_the_panel_opens_without_torch() -> None:
    assert loaded_by("labkit.widgets.tuning_panel", ("torch", "ipywidgets")) == {"ipywidgets"}


def test_every_public_name_can_be_looked_up() -> None:
    assert {name for name in dir(labkit) if getattr(labkit, name, None) is None} == set()


def test_type_checkers_see_the_names_that_dir_lists() -> None:
    tree = ast.parse((ROOT / "labkit/__init__.py").read_text())
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.asname for node in guard.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    declared = {node.target.id for node in guard.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    assert imported | declared == set(dir(labkit))


def test_an_unknown_name_says_where_the_known_ones_are() -> None:
    with pytest.raises(AttributeError, match=r"'labkit' has no attribute 'what_iff'; its public names are in dir"):
        labkit.what_iff  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    assert labkit.__version__ == "0.1.0"


def imports_of_the_root(source: str) -> list[int]:
    """Lines that import the package root itself, instead of one of its modules by its full name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names) if any(name.name == "labkit" for name in names):
                found.append(node.lineno)
            case ast.ImportFrom(module=module, level=level) if module == "labkit" or level > 0:
                found.append(node.lineno)
    return found


def test_no_module_imports_the_package_root() -> None:
    files = sorted((ROOT / "labkit").rglob("*.py"))
    assert len(files) > 10
    assert {
        str(file.relative_to(ROOT)): lines for file in files if (lines := imports_of_the_root(file.read_text()))
    } == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import labkit", [1]),
        ("import numpy\n\ndef f():\n    from labkit import what_if\n", [4]),
        ("from . import errors", [1]),
        ("from labkit.errors import LabkitError\nimport labkit.errors\n", []),
    ],
)
def test_the_check_on_the_package_root_tells_imports_apart(source: str, lines: list[int]) -> None:
    assert imports_of_the_root(source) == lines
