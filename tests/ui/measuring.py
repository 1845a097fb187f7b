"""A *Measure* of the panel that is in its timed steps from the first to the last thing that is done meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

#: The line of progress once steps are timed: before that the child imports torch, makes data and warms up.
TIMED = re.compile(r"\d[\d ,]* steps?, ")


@contextmanager
def measuring(page: Page, seconds: float = 120.0) -> Iterator[None]:
    """Measure with the panel's button, wait for the first timed step; at the end steps must still come; then cancel.

    Args:
        page: with one panel.
        seconds: of each strategy; more than what is done meanwhile takes, so that no warm-up falls into it.
    """
    panel = page.locator(".labkit-panel")
    field = panel.get_by_label("seconds each")
    before = field.input_value()
    field.fill(str(seconds))
    field.press("Enter")
    panel.get_by_role("button", name="Measure", exact=True).click()
    cancel = panel.get_by_role("button", name="Cancel", exact=True)
    progress = panel.locator(".labkit-progress")
    expect(progress).to_have_text(TIMED, timeout=90_000)
    expect(cancel).to_be_enabled()
    try:
        yield
        last = progress.inner_text()
        expect(progress).not_to_have_text(last, timeout=30_000)  # a step that ended after everything that was done
        expect(progress).to_have_text(TIMED)
        expect(cancel).to_be_enabled()
    finally:
        if cancel.is_enabled():
            cancel.click()
        expect(cancel).to_be_disabled(timeout=20_000)
        field.fill(before)
        field.press("Enter")
