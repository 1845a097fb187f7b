"""Keys and focus of single widgets: what is theirs stays, what is the page's goes on, a redraw takes no focus away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from labkit.gpu.verify.proof import Finding
from labkit.widgets.gauge_strip import GaugeStrip
from labkit.widgets.live_text import LiveText
from labkit.widgets.sortable_table import SortableTable
from labkit.widgets.source_editor import SourceEditor
from tests.ui.widget_page import from_python, reached, show_widget

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

SOURCES = {"a.cu": "one\ntwo\nthree\n", "rows.cuh": "four\n"}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page()
    yield made
    made.close()


def table(*values: int) -> str:
    rows = "".join(
        f'<tr data-strategy="s{i}"><th>s{i}</th><td data-value="{v}">{v}</td></tr>' for i, v in enumerate(values)
    )
    return f"<table><thead><tr><th>strategy</th><th>slots</th></tr></thead><tbody>{rows}</tbody></table>"


def focused(page: Page) -> str:
    text: str = page.evaluate("() => document.activeElement.textContent.slice(0, 40) || document.activeElement.tagName")
    return text


def order(page: Page) -> list[str]:
    return page.locator("td").all_inner_texts()


def test_sorting_by_key_leaves_the_focus_on_the_head_and_so_do_new_numbers(page: Page) -> None:
    shown = SortableTable()
    shown.value = table(3, 1, 2)
    show_widget(page, shown)
    page.locator("th", has_text="slots").focus()
    page.keyboard.press("Enter")
    assert (focused(page), order(page)) == ("slots", ["1", "2", "3"])
    page.keyboard.press("Space")
    assert (focused(page), order(page)) == ("slots", ["3", "2", "1"])
    shown.value = table(30, 10, 200)
    from_python(page, shown, "base", "patch")
    assert (focused(page), order(page)) == ("slots", ["200", "30", "10"])
    shown.value = table(5, 6, 7, 8).replace("</tr></thead>", "<th>more</th></tr></thead>")
    from_python(page, shown, "base", "patch")
    assert (focused(page), order(page)) == ("slots", ["8", "7", "6", "5"])
    page.keyboard.press("Enter")
    assert (focused(page), order(page)) == ("slots", ["5", "6", "7", "8"])


def test_where_the_most_is_the_best_it_comes_first(page: Page) -> None:
    shown = SortableTable()
    shown.value = table(3, 1, 2).replace("<th>slots", "<th data-most>slots")
    show_widget(page, shown)
    head = page.locator("th", has_text="slots")
    for expected in (["3", "2", "1"], ["1", "2", "3"], ["3", "1", "2"]):
        head.click()
        assert order(page) == expected


def test_new_numbers_leave_a_selection_of_text(page: Page) -> None:
    shown = SortableTable()
    shown.value = table(3, 1, 2)
    show_widget(page, shown)
    page.locator("th", has_text="s0").select_text()
    shown.value = table(3, 1, 20)
    from_python(page, shown, "base", "patch")
    assert order(page) == ["3", "1", "20"]
    assert page.evaluate("() => String(getSelection())") == "s0"


@pytest.mark.parametrize(
    "make", [SortableTable, GaugeStrip, lambda: SourceEditor(SOURCES)], ids=["table", "gauges", "source"]
)
def test_plain_keys_stay_and_shortcuts_of_the_page_go_on(page: Page, make) -> None:
    shown = make()
    if isinstance(shown, SortableTable):
        shown.value = table(1)
    show_widget(page, shown)
    page.locator("th, button, textarea").first.focus()
    for key in ("b", "d", "Control+Enter", "Control+s", "Control+Shift+c"):
        page.keyboard.press(key)
    assert reached(page) == ["s"]
    shown.close()


def test_saving_in_the_source_sends_what_was_typed_first_and_leaves_the_key_to_the_page(page: Page) -> None:
    show_widget(page, SourceEditor(SOURCES))
    page.evaluate(
        "() => document.addEventListener('keydown', (e) => { if (e.ctrlKey) window.before = window.saved.length; })"
    )
    page.locator("textarea").focus()
    page.keyboard.type("x")
    page.keyboard.press("Control+s")
    assert page.evaluate("() => window.before") == 1
    assert page.evaluate("() => window.saved[0].texts['a.cu']").startswith("x")
    assert "s" in reached(page)


def test_shift_enter_is_a_new_line_and_tab_indents(page: Page) -> None:
    show_widget(page, SourceEditor(SOURCES))
    page.locator("textarea").focus()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Tab")
    assert page.locator("textarea").input_value() == "\n  one\ntwo\nthree\n"
    assert reached(page) == []


def test_tabs_and_reports_of_the_source_keep_the_focus(page: Page) -> None:
    shown = SourceEditor(SOURCES)
    shown.show_findings([Finding("race", "a.cu", 2, "thread 1"), Finding("race", "rows.cuh", 1, "thread 2")], SOURCES)
    show_widget(page, shown)
    page.get_by_role("tab", name="rows.cuh").focus()
    page.keyboard.press("Enter")
    assert focused(page).startswith("rows.cuh")
    assert page.locator(".labkit-source").get_attribute("data-shown") == "rows.cuh"
    shown.marks = shown.marks[:1]
    from_python(page, shown, "marks")
    assert focused(page).startswith("rows.cuh")
    page.locator(".report").first.focus()
    shown.show_findings([Finding("race", "a.cu", 3, "thread 4")], SOURCES)
    from_python(page, shown, "marks", "checked")
    assert "a.cu:3" in focused(page)
    assert page.locator(".spoken").inner_text() == "reports: 1, race"
    shown.show_findings([], SOURCES)
    from_python(page, shown, "marks", "checked")
    assert page.locator(".spoken").inner_text() == "no reports"


def test_what_is_said_goes_into_regions_that_were_there_before_and_is_put_once(page: Page) -> None:
    said = LiveText()
    show_widget(page, said)
    page.evaluate(
        """() => {
          window.regions = [...document.querySelectorAll("[role=status], [role=alert]")];
          window.changes = 0;
          new MutationObserver((all) => { window.changes += all.length; }).observe(document.body, {
            subtree: true, childList: true, characterData: true });
        }"""
    )
    for text, error in (("<b>no such file", True), ("<b>no such file", True), ("Saved", False), ("", False)):
        said.say(text, error=error)
        from_python(page, said, "text", "is_error")
        assert page.get_by_role("alert").inner_text() == (text if error else "")
        assert page.get_by_role("status").inner_text() == ("" if error else text)
    assert page.evaluate("() => window.regions.every((region) => region.isConnected) && window.regions.length") == 2
    assert page.evaluate("() => window.changes") == 4
