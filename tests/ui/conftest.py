"""One JupyterLab and one Chromium for all browser tests; one page for all tests of a file."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, expect, sync_playwright

from tests.ui.jupyter import CHROMIUM_ARGS, ROOT, JupyterLab, open_notebook, run_all

#: Screenshots of this run, for a person to look at.
SHOTS = ROOT / "test-results"
NOTEBOOK = "01_tune_buckets.ipynb"
_watched: list[Page] = []


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "Chromium is missing: run `make setup-tests` (on Debian/Ubuntu: sudo apt-get install chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(workspace: Path) -> Iterator[JupyterLab]:
    server = JupyterLab(workspace)
    yield server
    server.stop()


@contextlib.contextmanager
def watched_page(browser: Browser, name: str) -> Iterator[Page]:
    """A page whose errors fail the test, and of which a screenshot is kept."""
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"{error.message}\n{error.stack}"))
    _watched.append(page)
    try:
        yield page
    finally:
        _watched.remove(page)
        with contextlib.suppress(Error):  # a page that crashed has no picture; what made the test fail is told
            shot(page, name)
        page.close()
    assert errors == [], "the page raised errors"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails leaves a picture of its own: that of the file is of its last test."""
    report = yield
    if report.failed:
        for page in _watched:
            with contextlib.suppress(Error):
                shot(page, f"failed-{item.name}")
    return report


def shot(page: Page, name: str) -> None:
    """Keep a screenshot."""
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture(scope="module")
def shared_panel_page(
    browser: Browser, lab: JupyterLab, workspace: Path, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """The tuning notebook, all cells run, its panel in sight, once for all tests of a file."""
    name = request.module.__name__.rsplit(".", 1)[-1]
    with watched_page(browser, name) as page:
        open_panel(page, lab, workspace, name)
        yield page
    lab.shut_down_kernels()


def open_panel(page: Page, lab: JupyterLab, workspace: Path, name: str) -> Locator:
    """Open a fresh copy of the notebook, run it, bring its panel into sight."""
    folder = workspace / name / "notebooks"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / NOTEBOOK, folder)
    open_notebook(page, lab, f"{folder.relative_to(workspace)}/{NOTEBOOK}")
    run_all(page)
    return in_sight(page)


def in_sight(page: Page) -> Locator:
    """Scroll the panel to the top, and wait until its editor is drawn."""
    panel = page.locator(".labkit-panel")
    panel.evaluate("e => e.scrollIntoView({block: 'start'})")
    expect(panel.locator(".labkit-editor .bar").first).to_be_visible(timeout=30_000)
    return panel
