"""How the tuning panel looks: every text stands out in both themes, nothing is cut and no stray scrollbar is there."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as TooLate

from tests.ui.panel import unfold

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

_CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
_CONTRAST = _CONTRAST[_CONTRAST.index("(root) =>") :]
#: Elements of the output that can be scrolled sideways, but for the box of a table.
_SCROLLED = """panel => [panel.closest(".jp-OutputArea"), ...panel.closest(".jp-OutputArea").querySelectorAll("*")]
  .filter(e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX) && e.clientWidth > 0)
  .filter(e => e.scrollWidth > e.clientWidth && !e.matches(".labkit-table-box, input, textarea"))
  .map(e => `${e.className}: ${e.scrollWidth} > ${e.clientWidth}`)"""


@pytest.fixture
def panel(shared_panel_page: Page) -> Locator:
    return shared_panel_page.locator(".labkit-panel")


@pytest.mark.parametrize(("width", "height"), [(1500, 1000), (1280, 800), (700, 900), (640, 400)])
def test_no_part_has_a_sideways_scrollbar(panel: Locator, width: int, height: int) -> None:
    """The narrowest is a laptop's window at 200 %."""
    panel.page.set_viewport_size({"width": width, "height": height})
    panel.page.wait_for_function("width => innerWidth === width", arg=width)
    try:
        with contextlib.suppress(TooLate):  # figures are fitted in the next frames
            panel.page.wait_for_function(
                f"() => !({_SCROLLED})(document.querySelector('.labkit-panel')).length", timeout=5_000
            )
        assert panel.evaluate(_SCROLLED) == []
    finally:
        panel.page.set_viewport_size({"width": 1500, "height": 1000})


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_every_text_stands_out_from_its_ground(panel: Locator, theme: str) -> None:
    page = panel.page
    unfold(panel, "edges as numbers")
    panel.get_by_role("button", name="Keep A", exact=True).click()
    expect(panel.locator(".labkit-compared").first).to_be_visible(timeout=20_000)
    page.locator(".lm-MenuBar-item", has_text="Settings").first.click()
    page.locator(".lm-Menu-itemLabel", has_text="Theme").first.hover()
    page.locator(".lm-Menu-itemLabel", has_text=theme).first.click()
    expect(page.locator(f"body[data-jp-theme-name='{theme}']")).to_be_attached(timeout=20_000)
    page.mouse.move(0, 0)
    seen: dict[str, Any] = panel.evaluate(_CONTRAST)
    assert seen["looked"] > 300
    assert seen["found"] == []
