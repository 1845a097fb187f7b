"""Notebook 04 as a person uses it: a barrier is deleted, Check says which lines race, Reset takes it back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.ui.conftest import watched_page
from tests.ui.jupyter import ROOT, JupyterLab, open_notebook, run_all

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

NOTEBOOK = "04_kernels.ipynb"
BARRIER = "  __syncthreads();\n"
SELECT = """(area, text) => {
  const at = area.value.indexOf(text);
  area.focus();
  area.setSelectionRange(at, at + text.length);
  return area.value.slice(0, at).split("\\n").length;
}"""


@pytest.fixture
def editor(browser: Browser, lab: JupyterLab, workspace: Path, request: pytest.FixtureRequest) -> Iterator[Locator]:
    """The editor of the notebook on its smallest kernel, all cells run."""
    folder = workspace / request.node.name / "notebooks"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / NOTEBOOK, folder)
    copy = folder / NOTEBOOK
    text = copy.read_text(encoding="utf-8")
    assert '\\"segment_pool\\"' in text
    copy.write_text(text.replace('\\"segment_pool\\"', '\\"bin_rows\\"'), encoding="utf-8")
    with watched_page(browser, "test_kernel_lab") as page:
        open_notebook(page, lab, f"{folder.relative_to(workspace)}/{NOTEBOOK}")
        run_all(page)
        found = page.locator(".labkit-source")
        found.evaluate("e => e.scrollIntoView({block: 'start'})")
        yield found
    lab.shut_down_kernels()


def test_a_deleted_barrier_is_found_at_its_lines_and_reset_takes_it_back(editor: Locator) -> None:
    page = editor.page
    area = editor.get_by_label("kernel source", exact=True)
    expect(editor).to_have_attribute("data-reports", "0")
    expect(editor.locator(".line .b.lanes").first).to_be_visible()
    check_alignment(editor)
    check_keys(editor, area)

    line = area.evaluate(SELECT, BARRIER)
    page.keyboard.press("Delete")
    expect(editor).to_have_attribute("data-changed", "bin_rows.cu")
    assert BARRIER not in area.input_value().split("atomicAdd", 1)[0]
    page.keyboard.press("Control+Enter")
    race = editor.locator(f".report[data-kind=race][data-place='bin_rows.cu:{line - 1}']")
    expect(race).to_contain_text("and nothing orders the two", timeout=60_000)
    expect(page.locator(".labkit-message .verdict")).to_contain_text("not proved")
    expect(editor.locator(f".line[data-line='{line - 1}'] button.mark")).to_have_attribute(
        "title", re.compile("^race: ")
    )
    race.click()
    assert area.evaluate("a => a.value.slice(a.selectionStart, a.selectionEnd)").strip().endswith("= 0;")

    page.locator(".labkit-kernel-lab button", has_text="Reset").click()
    expect(editor).to_have_attribute("data-changed", "")
    assert BARRIER in area.input_value().split("atomicAdd", 1)[0]


def check_alignment(editor: Locator) -> None:
    """The coloured text, the text that is typed in and the gutter have the same lines."""
    heights = editor.evaluate(
        """root => {
          const ink = document.createRange();
          ink.selectNodeContents(root.querySelector(".ink"));
          return [ink.getBoundingClientRect().height, root.querySelector("textarea").scrollHeight,
                  root.querySelector(".gutter").getBoundingClientRect().height];
        }"""
    )
    assert max(heights) - min(heights) <= 18 + 4, heights  # an empty last line has no ink


def check_keys(editor: Locator, area: Locator) -> None:
    """Tab inserts spaces, undo takes them back, letters are no shortcuts, Escape leaves."""
    page = editor.page
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    before = area.input_value()
    area.evaluate(SELECT, "#include")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    assert "\n  #include" in area.input_value()
    page.keyboard.press("Control+z")
    assert area.input_value() == before
    for key in ("b", "d", "d"):  # in the notebook: insert a cell, delete it
        page.keyboard.press(key)
    assert "bdd#include" in area.input_value()
    for _ in range(3):
        page.keyboard.press("Backspace")
    expect(editor).to_have_attribute("data-changed", "")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "pane"
    page.keyboard.press("b")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
