"""The tuning panel on a page: how its parts are found, and how it is brought back to its start."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, expect

from tests.ui.inside import ask_kernel
from tests.ui.jupyter import cell_value, expect_changed

OPTIMAL = "35,66,112,168,236,307,414,737"


def reset(panel: Locator) -> None:
    """The start: ml-100k, its optimal edges, no cap, no model, everything else as it was."""
    page = panel.page
    for menu, label in (
        ("data", "ml-100k: MovieLens 100K, ratings of a user"),
        ("model", "none: lengths alone"),
        ("overflow", "error"),
        ("what", "all that fit"),
    ):
        field = panel.get_by_label(menu, exact=True)
        if field.evaluate("e => e.selectedOptions[0]?.textContent") != label:
            field.select_option(label=label)
    panel.get_by_label("cap", exact=True).uncheck()
    budget = panel.locator(".labkit-field").get_by_label("token budget", exact=True)
    if budget.input_value() != "16384":
        budget.fill("16384")
        budget.press("Enter")
    panel.get_by_role("button", name="Optimal edges").click()
    expect(panel.locator(".labkit-editor")).to_have_attribute("data-edges", OPTIMAL, timeout=20_000)
    expect(padding(panel)).to_have_attribute("data-value", "0.181039424762092", timeout=20_000)
    page.keyboard.press("Escape")


def padding(panel: Locator, strategy: str = "bucket_budget") -> Locator:
    return cell_value(panel, strategy, "padding_ratio")


def value(cell: Locator) -> float:
    return float(cell.get_attribute("data-value") or "nan")


def unfold(panel: Locator, title: str) -> None:
    """Open a section that is folded."""
    heading = panel.locator(".labkit-heading", has_text=title)
    if heading.get_attribute("title") == "show":
        heading.click()
        expect(heading).to_have_attribute("title", "hide", timeout=20_000)


def edge_row(panel: Locator, number: int) -> Locator:
    """The slider and the field of an edge."""
    unfold(panel, "edges as numbers")
    return panel.locator(".widget-hbox", has=panel.page.get_by_text(f"edge {number}", exact=True)).last


def edge_field(panel: Locator, number: int) -> Locator:
    """Where an edge is typed."""
    return edge_row(panel, number).locator(".labkit-field input")


def type_edge(panel: Locator, number: int, edge: int) -> None:
    field = edge_field(panel, number)
    field.fill(str(edge))
    field.press("Enter")


def callback_threads(panel: Locator) -> set[str]:
    """Names of the kernel's threads on which callbacks of the editor ran, in three moves by key.

    The kernel answers the first message of a widget on the thread that published it last, that of the cell.
    """
    page, cell = panel.page, padding(panel, "bucket_rows")
    watch = "panel.editor.observe(lambda _: _names.append(threading.current_thread().name), 'edges')"
    ask_kernel(page, "0", f"import threading; _names = []; {watch}")
    for _ in range(3):
        before = cell.get_attribute("data-value") or ""
        panel.locator(".labkit-editor .handle.edge").first.focus()
        page.keyboard.press("ArrowRight")
        expect_changed(cell, before)
    names: list[str] = ask_kernel(page, "_names")
    assert len(names) >= 3
    return set(names)


def thread_names(panel: Locator) -> Any:
    """Of all threads of the kernel."""
    return ask_kernel(panel.page, "[t.name for t in __import__('threading').enumerate()]")
