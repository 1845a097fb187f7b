"""A panel in the life of a notebook: the page is loaded again, the kernel restarted, a parameter wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.ui.conftest import in_sight, open_panel, watched_page
from tests.ui.jupyter import JupyterLab, expect_changed, run_all, wait_idle
from tests.ui.panel import callback_threads, padding

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def page(browser: Browser, lab: JupyterLab, workspace: Path) -> Iterator[Page]:
    with watched_page(browser, "test_notebook_life") as page:
        page.on("dialog", lambda dialog: dialog.accept())
        open_panel(page, lab, workspace, "test_notebook_life")
        yield page
    lab.shut_down_kernels()


def expect_alive(panel: Locator, key: str) -> None:
    """An edge that is moved changes what Python computes."""
    cell = padding(panel, "bucket_rows")
    before = cell.get_attribute("data-value") or ""
    panel.locator(".labkit-editor .handle.edge").first.focus()
    panel.page.keyboard.press(key)
    expect_changed(cell, before)


def test_callbacks_run_on_a_subshell_as_jupyterlab_has_it(page: Page) -> None:
    names = callback_threads(in_sight(page))
    assert any(name.startswith("subshell-") for name in names), names
    assert names <= {"MainThread", *(name for name in names if name.startswith("subshell-"))}, names


def test_a_page_that_is_loaded_again_finds_its_panel(page: Page) -> None:
    editor = page.locator(".labkit-editor")
    moved = editor.get_attribute("data-edges") or ""
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=20_000)
    page.reload(wait_until="domcontentloaded")
    page.locator(".jp-NotebookPanel .jp-Notebook").wait_for(state="visible", timeout=60_000)
    wait_idle(page)
    page.locator(".jp-OutputArea .labkit-panel").wait_for(state="attached", timeout=60_000)
    panel = in_sight(page)
    expect(editor).to_have_attribute("data-edges", moved)  # as it was left, not as it opens
    expect(editor.locator(".handle.edge")).to_have_count(len(moved.split(",")))
    expect_alive(panel, "PageUp")


def test_a_restarted_kernel_runs_all_cells_again(page: Page) -> None:
    page.locator(".lm-MenuBar-item", has_text="Kernel").first.click()
    page.locator(".lm-Menu-item[data-command='runmenu:restart-and-run-all']").first.click()
    page.locator(".jp-Dialog-button", has_text="Restart").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')]"
        ".some(e => e.textContent.includes('[*]'))",
        timeout=60_000,
    )
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')]"
        ".every(e => /\\[\\d+\\]/.test(e.textContent))",
        timeout=90_000,
    )
    wait_idle(page)
    expect(page.locator(".jp-OutputArea .labkit-panel")).to_have_count(1)
    expect_alive(in_sight(page), "PageUp")


def test_a_wrong_parameter_is_refused_before_anything_is_computed(page: Page) -> None:
    cell = page.locator(".jp-Notebook .jp-CodeCell .cm-content").first
    cell.evaluate("e => e.scrollIntoView({block: 'center'})")
    cell.click()
    page.keyboard.press("Control+End")
    page.keyboard.type('\nmodel = "dim"')
    with pytest.raises(AssertionError, match="model 'dim' does not exist: use one of din, sasrec, gru4rec"):
        run_all(page)
