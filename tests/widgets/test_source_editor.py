"""SourceEditor without a browser: what it sends and takes; and its pure module in node."""

from __future__ import annotations

from pathlib import Path

from labkit.gpu.host.reports import LineCounts
from labkit.gpu.verify.proof import Finding
from labkit.widgets.source_editor import SourceEditor
from tests.widgets.test_edge_editor import node

SHIPPED = {"a.cu": "one\ntwo\n", "rows.cuh": "three\n"}


def test_the_pure_module_passes_its_own_tests() -> None:
    done = node("--test", str(Path(__file__).with_name("cuda_words.test.mjs")))
    assert done.returncode == 0, done.stdout
    assert "\n# pass 0" not in done.stdout


def test_the_joined_module_is_one_that_a_browser_can_load(tmp_path: Path) -> None:
    (tmp_path / "editor.mjs").write_text(SourceEditor._esm)
    (tmp_path / "load.mjs").write_text('import widget from "./editor.mjs"; console.log(typeof widget.render);')
    done = node(str(tmp_path / "load.mjs"))
    assert done.stdout == "function\n", done.stderr


def test_typing_changes_the_texts_and_reset_takes_it_back() -> None:
    editor = SourceEditor(SHIPPED)
    editor.set_state({"texts": {**SHIPPED, "a.cu": "one\n"}})
    assert editor.texts["a.cu"] == "one\n"
    editor.reset()
    assert editor.texts == editor.shipped == SHIPPED


def test_the_keyboard_asks_for_a_check() -> None:
    calls: list[int] = []
    editor = SourceEditor(SHIPPED, lambda: calls.append(1))
    editor.set_state({"asked": 1})
    assert calls == [1]


def test_findings_and_counts_carry_the_text_they_are_of() -> None:
    editor = SourceEditor(SHIPPED)
    editor.show_findings([Finding("wrong_result", None, None, "sums"), Finding("race", "a.cu", 2, "thread 1")], SHIPPED)
    assert [(mark["title"], mark["line"]) for mark in editor.marks] == [("race", 2), ("wrong result", None)]
    assert editor.checked == SHIPPED
    editor.show_counts([LineCounts("a.cu", 1, "load", "global", 4, 2, 48, 8, 6, None)], SHIPPED)
    (figures,) = editor.figures
    assert (figures["file"], figures["line"], figures["lanes"]) == ("a.cu", 1, 24)
    assert (figures["sectors"], figures["passes"]) == (8 / 6, None)


def test_other_sources_forget_what_was_known_of_the_old_ones() -> None:
    editor = SourceEditor(SHIPPED)
    editor.show_findings([Finding("race", "a.cu", 2, "thread 1")], SHIPPED)
    editor.show_sources({"b.cu": "four"}, {"b.cu": "five"})
    assert (editor.texts, editor.shipped) == ({"b.cu": "five"}, {"b.cu": "four"})
    assert (editor.marks, editor.figures, editor.checked) == ([], [], {})
