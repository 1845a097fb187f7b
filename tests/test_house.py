"""The rules of the tree: small files, thin notebooks, floors that hold, documents that name what exists."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("labkit", "kernels", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".js", ".mjs", ".css", ".cu", ".cuh", ".cpp", ".h", ".hpp"}
)


# --- sizes and names


def long_functions(source: str, most: int) -> dict[str, int]:
    """Functions of a Python source that have more than ``most`` lines."""
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    sizes = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    return {name: size for name, size in sizes.items() if size > most}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_source_file_is_over_400_lines() -> None:
    assert len(SOURCES) > 10
    sizes = {relative(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_no_function_is_over_80_lines() -> None:
    found = {relative(path): long_functions(path.read_text(), 80) for path in SOURCES if path.suffix == ".py"}
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_the_check_on_functions_counts_their_lines() -> None:
    source = "class C:\n    async def long(self):\n" + 3 * "        pass\n" + "def short():\n    pass\n"
    assert long_functions(source, 3) == {"long": 4}
    assert long_functions(source, 4) == {}


def test_no_file_is_a_drawer() -> None:
    drawers = re.compile(r"_?(utils?|helpers?|common|misc)")
    assert [relative(path) for path in SOURCES if drawers.fullmatch(path.stem)] == []


# --- floors


def test_the_floors_hold_and_the_check_can_fail(tmp_path: Path) -> None:
    # a copy of the tree in which the lowest floor reaches for the highest but one
    shutil.copytree(ROOT / "labkit", tmp_path / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    clean = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert clean.returncode == 0, clean.stdout
    with (tmp_path / "labkit/units.py").open("a") as file:
        file.write("\nfrom labkit import nbrun as nbrun\n")
    broken = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert broken.returncode == 1
    assert "labkit.units is not allowed to import labkit.nbrun" in broken.stdout


# --- the Makefile and the documents


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_make_alone_lists_every_target_with_a_line_of_help() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^ +make ([a-z-]+) +(\S.*)$", done.stdout, flags=re.MULTILINE))
    assert set(listed) == targets()


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_documents_name_only_targets_that_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    assert set(re.findall(r"`make ([a-z-]+)", text)) - targets() == set()


def test_a_run_in_which_every_test_is_skipped_fails(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "test_one.py").write_text("import pytest\n\ndef test_one():\n    pytest.skip('no browser')\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "no test ran: all were skipped" in done.stdout
