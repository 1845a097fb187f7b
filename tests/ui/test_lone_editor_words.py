"""What the editor writes and says: figures, problems, labels in the picture, the text beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.lone_editor import LoneEditor, Opened, box_of, lone_page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    with lone_page(browser) as page:
        yield lambda **state: LoneEditor(page, **state)


WATCH = """
() => {
  window.told = 0;
  for (const region of document.querySelectorAll("[role=status], [role=alert], [aria-live]"))
    new MutationObserver((changes) => { told += changes.length; })
      .observe(region, { childList: true, subtree: true, characterData: true });
}
"""


def test_a_drag_is_told_once_with_its_problem_when_the_hand_rests(opened: Opened) -> None:
    editor = opened()
    editor.page.evaluate(WATCH)
    x, y = editor.take(editor.handle(3))
    for step in range(1, 21):
        editor.page.mouse.move(x - 5 * step, y)
        expect(editor.root.locator(".problem")).to_contain_text("> last bucket edge")
    assert editor.page.evaluate("told") == 0
    editor.page.mouse.up()
    spoken = editor.root.locator(".spoken")
    expect(spoken).to_contain_text(re.compile("^bucket edge 3 of 3: refused.*raise the last edge"))
    assert editor.page.evaluate("told") == 1
    expect(spoken).to_have_attribute("role", "status")


def test_what_was_moved_is_what_is_told(opened: Opened) -> None:
    editor = opened(max_length=80)
    editor.handle(1).focus()
    editor.page.keyboard.press("ArrowRight")
    spoken = editor.root.locator(".spoken")
    expect(spoken).to_contain_text("bucket edge 1 of 3: ")
    editor.cap.focus()
    editor.page.keyboard.press("ArrowLeft")
    expect(spoken).to_contain_text("longest length kept: ")
    expect(spoken).not_to_contain_text("bucket edge")
    expect(editor.cap).to_have_attribute("aria-valuetext", "the 79 most recent events are kept")


def test_what_is_refused_has_no_figures_and_says_what_to_do(opened: Opened) -> None:
    editor = opened()
    expect(editor.root.locator(".padding")).to_have_count(1)
    rules = editor.page.evaluate("model.get('rules')")
    editor.receive(rules=rules | {"budget": 20})
    expect(editor.root.locator(".padding")).to_have_count(0)
    expect(editor.root.locator(".values")).to_have_text("refused: not a plan, so there are no figures")
    expect(editor.root.locator(".problem")).to_have_text(
        "bucket width 100 is above token_budget 20, so not one row fits (2 of 3 buckets are too wide): "
        "raise token_budget to 100 or more, set max_length, or choose oversize 'single_row'."
    )
    assert "padding" not in (editor.handle(1).get_attribute("aria-valuetext") or "")
    expect(editor.root.locator(".pad").first).to_be_hidden()
    editor.receive(rules=rules)
    expect(editor.root.locator(".problem")).to_be_empty()
    expect(editor.root.locator(".padding")).to_have_count(1)


def test_numbers_stand_beside_the_line_of_the_cap_and_within_the_picture(opened: Opened) -> None:
    editor = opened(max_length=50)
    for cap, side in ((50, 1), (100, -1), (1, 1)):
        editor.receive(max_length=cap)
        expect(editor.cap.locator(".number")).to_have_text(f"cap {cap}")
        line, number = box_of(editor.cap.locator("line")), box_of(editor.cap.locator(".number"))
        picture = box_of(editor.root.locator("svg"))
        gap = number["x"] - line["x"] - line["width"] if side > 0 else line["x"] - number["x"] - number["width"]
        assert 0 < gap < 15
        assert picture["x"] <= number["x"]
        assert number["x"] + number["width"] <= picture["x"] + picture["width"]


def test_the_padding_of_a_bucket_is_written_over_its_bars(opened: Opened) -> None:
    editor = opened(counts=[1] * 60 + [900] * 40)
    label = editor.root.locator(".pad").last
    box = box_of(label)
    top = editor.page.evaluate(
        "([x, y]) => { const label = document.querySelectorAll('.pad'); const own = [...label].at(-1);"
        " own.style.pointerEvents = 'auto'; return document.elementFromPoint(x, y) === own; }",
        [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2],
    )
    assert top
    halo = label.evaluate("e => [getComputedStyle(e).paintOrder, parseFloat(getComputedStyle(e).strokeWidth)]")
    assert halo == ["stroke", 5]


def test_a_bar_of_one_sequence_says_one_sequence(opened: Opened) -> None:
    editor = opened(lengths=[1, 40], counts=[1, 2000], edges=[40])
    titles = [
        title for title in editor.root.locator(".bar title").all_text_contents() if not title.endswith(" 0 sequences")
    ]
    assert titles[0] == "length 1: 1 sequence"
    assert titles[1].endswith(": 2,000 sequences")


# --- the text


def test_an_edge_typed_twice_is_kept_once_and_the_text_says_so(opened: Opened) -> None:
    editor = opened()
    twin = editor.root.get_by_label("bucket edges as text")
    twin.fill("35, 35, 66, 100")
    twin.press("Enter")
    editor.says(35, 66, 100)
    expect(twin).to_have_value("35, 66, 100")
    expect(editor.root.locator(".problem")).to_have_text("35 twice: kept once.")
    expect(editor.root.locator(".spoken")).to_contain_text("35 twice: kept once.")
    editor.handle(1).focus()
    editor.page.keyboard.press("ArrowRight")
    expect(editor.root.locator(".problem")).to_be_empty()


def test_a_text_that_was_not_edited_follows_and_never_overwrites(opened: Opened) -> None:
    editor = opened()
    twin = editor.root.get_by_label("bucket edges as text")
    twin.fill("20, 100")
    twin.press("Enter")
    editor.answer()
    editor.receive(lengths=[1, 2, 5, 30], counts=[4, 3, 2, 1], edges=[2, 30])  # the text still has the focus
    expect(twin).to_have_value("2, 30")
    twin.blur()
    editor.says(2, 30)
    assert editor.page.evaluate("sent.length") == 1
    # what was edited is taken when the focus goes, and what cannot be read stays to be mended
    twin.fill("5, 30")
    twin.blur()
    editor.says(5, 30)
    twin.fill("5, x")
    twin.blur()
    expect(twin).to_have_value("5, x")
    expect(twin).to_have_attribute("aria-invalid", "true")
    twin.press("Escape")
    expect(twin).to_have_value("5, 30")
    expect(editor.root.locator(".problem")).to_be_empty()


def test_an_edge_that_cannot_be_added_is_said(opened: Opened) -> None:
    editor = opened(lengths=[1, 7], counts=[3, 3], edges=[1, 7])
    add = editor.root.get_by_role("button", name="+ edge")
    add.click()
    problem = editor.root.locator(".problem.note")
    expect(problem).to_have_text("One more edge saves nothing here.")
    editor = opened(most=4)
    add.click()
    expect(editor.root.locator(".handle.edge")).to_have_count(4)
    expect(problem).to_have_text("")
    add.click()
    expect(problem).to_have_text("4 edges are the most.")
