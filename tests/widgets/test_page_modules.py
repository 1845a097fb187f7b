"""The pure modules of the widgets in node: every test file there is, so that none is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.widgets.test_edge_editor import node

FILES = sorted(Path(__file__).parent.glob("*.test.mjs"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_module_passes_its_own_tests(file: Path) -> None:
    done = node("--test", str(file))
    assert done.returncode == 0, done.stdout
    assert "\n# fail 0" in done.stdout
    assert "\n# pass 0" not in done.stdout


def test_there_are_tests_of_modules() -> None:
    assert {file.name for file in FILES} >= {"padding.test.mjs", "edge_moves.test.mjs", "edge_words.test.mjs"}
