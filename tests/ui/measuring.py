"""A *Measure* of the panel that runs while something else is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect


@contextmanager
def measuring(page: Page) -> Iterator[None]:
    """Start a measurement with the panel's button, and cancel it at the end; it must still run by then."""
    panel = page.locator(".labkit-panel")
    panel.get_by_role("button", name="Measure", exact=True).click()
    cancel = panel.get_by_role("button", name="Cancel", exact=True)
    expect(cancel).to_be_enabled(timeout=20_000)
    page.wait_for_timeout(1500)
    yield
    expect(cancel).to_be_enabled(timeout=1_000)
    cancel.click()
    expect(cancel).to_be_disabled(timeout=20_000)
