"""JupyterLab's setting ``commsOverSubshells`` is off here; all other files have its default, ``perCommTarget``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.ui.conftest import open_panel, watched_page
from tests.ui.jupyter import JupyterLab, cell_value, expect_changed
from tests.ui.measuring import measuring
from tests.ui.panel import callback_threads, padding, thread_names

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETTINGS = {"@jupyterlab/apputils-extension:kernels-settings": {"commsOverSubshells": "disabled"}}


@pytest.fixture(scope="module")
def panel(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locator]:
    folder: Path = tmp_path_factory.mktemp("without")
    lab = JupyterLab(folder, settings=SETTINGS)
    try:
        with watched_page(browser, "test_without_subshells") as page:
            yield open_panel(page, lab, folder, "test_without_subshells")
    finally:
        lab.stop()


def test_callbacks_run_on_the_kernels_main_thread(panel: Locator) -> None:
    assert callback_threads(panel) == {"MainThread"}
    assert not [name for name in thread_names(panel) if name.startswith("subshell")]


def test_edges_models_and_measuring_work_without_subshells(panel: Locator) -> None:
    cell = padding(panel, "bucket_rows")
    first = panel.locator(".labkit-editor .handle.edge").first
    before = cell.get_attribute("data-value") or ""
    first.focus()
    panel.page.keyboard.press("PageUp")
    expect_changed(cell, before)
    panel.get_by_label("model", exact=True).select_option(label="pooled tower: mean of the history's embeddings")
    expect(cell_value(panel, "bucket_rows", "launches")).to_be_visible(timeout=60_000)
    with measuring(panel.page):
        before = cell.get_attribute("data-value") or ""
        first.focus()
        panel.page.keyboard.press("PageUp")
        expect_changed(cell, before)
