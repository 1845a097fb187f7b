"""The editor without a notebook: pointers, keys, and what Python may say in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from tests.ui.lone_editor import LoneEditor

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

Opened = Callable[..., LoneEditor]


@pytest.fixture(scope="module")
def blank_page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    yield page
    page.close()


@pytest.fixture
def opened(blank_page: Page) -> Iterator[Opened]:
    errors: list[str] = []
    listener = lambda error: errors.append(str(error))  # noqa: E731
    blank_page.on("pageerror", listener)
    yield lambda **state: LoneEditor(blank_page, **state)
    blank_page.mouse.up()
    blank_page.remove_listener("pageerror", listener)
    assert errors == []


def box_of(part: Locator) -> FloatRect:
    box = part.bounding_box()
    assert box is not None
    return box


# --- a drag ends with its handle, its button and its pointer


def test_a_handle_deleted_under_the_hand_leaves_nothing_to_drag(opened: Opened) -> None:
    editor = opened()
    x, y = editor.take(editor.handle(2))
    editor.page.keyboard.press("Delete")
    editor.says(10, 100)
    editor.page.mouse.up()
    last, _ = editor.grip(editor.handle(2))
    for to in (x, x + 50, last - 4, last - 8):
        editor.page.mouse.move(to, y)
    editor.handle(1).focus()
    editor.page.keyboard.press("ArrowRight")  # after all moves
    editor.says(11, 100)
    expect(editor.root.locator(".held")).to_have_count(0)


def test_a_button_that_went_up_unnoticed_ends_the_drag(opened: Opened) -> None:
    editor = opened()
    x, y = editor.take(editor.handle(2))
    editor.page.mouse.move(x + 40, y)
    expect(editor.root).not_to_have_attribute("data-edges", "10,40,100")
    shown = editor.edges
    moved = {"pointerId": 1, "buttons": 0, "clientX": x + 90, "clientY": y, "bubbles": True}
    editor.handle(2).dispatch_event("pointermove", moved)
    expect(editor.root.locator(".held")).to_have_count(0)
    assert editor.edges == shown


def test_another_width_in_a_drag_ends_nothing_and_python_is_heard_afterwards(opened: Opened) -> None:
    editor = opened()
    x, y = editor.take(editor.handle(2))
    editor.page.mouse.move(x + 20, y)
    before = editor.edges
    editor.page.evaluate("document.getElementById('here').style.width = '700px'")
    expect(editor.root.locator("svg")).to_have_attribute("viewBox", re.compile("^0 0 7"))
    expect(editor.root.locator(".held")).to_have_count(1)
    editor.page.mouse.move(x - 160, y)
    expect(editor.root).not_to_have_attribute("data-edges", ",".join(map(str, before)))
    editor.page.mouse.up()
    editor.answer()
    editor.receive(max_length=77)
    expect(editor.cap).to_have_attribute("aria-valuenow", "77")


def test_a_second_finger_neither_moves_nor_ends_what_the_first_holds(opened: Opened) -> None:
    editor = opened()
    session = editor.page.context.new_cdp_session(editor.page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        fingers = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    (x, y), (u, v) = editor.grip(editor.handle(1)), editor.grip(editor.handle(2))
    touch("touchStart", (x, y))
    touch("touchMove", (x + 40, y))
    touch("touchStart", (x + 40, y), (u, v))
    touch("touchMove", (x + 40, y), (u + 90, v))
    assert editor.edges[1:] == [40, 100]
    touch("touchMove", (x + 40, y))  # the second is gone
    touch("touchMove", (x + 80, y))
    expect(editor.root).to_have_attribute("data-edges", re.compile("^(18|19|20),40,100"))
    touch("touchEnd")
    expect(editor.root.locator(".held")).to_have_count(0)
    session.detach()


def test_escape_gives_back_what_was_before_and_leaves_nothing_held_or_to_redo(opened: Opened) -> None:
    editor = opened()
    editor.handle(1).focus()
    editor.page.keyboard.press("ArrowRight")
    x, y = editor.take(editor.handle(2))
    for step in range(1, 4):
        editor.page.mouse.move(x + 30 * step, y)
    expect(editor.root.locator(".held")).to_have_count(1)
    editor.page.keyboard.press("Escape")
    editor.says(11, 40, 100)
    expect(editor.root.locator(".held")).to_have_count(0)
    editor.page.mouse.move(x + 200, y)
    editor.says(11, 40, 100)
    editor.page.mouse.up()
    expect(editor.root.get_by_label("redo")).to_be_disabled()
    editor.page.keyboard.press("Control+z")
    editor.says(10, 40, 100)


# --- what Python says


def test_edges_that_come_while_a_handle_is_only_held_are_shown_when_it_is_released(opened: Opened) -> None:
    editor = opened()
    editor.take(editor.handle(2))
    editor.receive(edges=[20, 60, 100])
    editor.says(10, 40, 100)
    editor.page.mouse.up()
    editor.says(20, 60, 100)
    editor.page.keyboard.press("ArrowRight")
    editor.says(20, 61, 100)


OTHER = {"lengths": [1, 2, 5, 30], "counts": [4, 3, 2, 1]}


@pytest.mark.parametrize(
    "names", [("lengths", "counts", "edges"), ("edges", "lengths", "counts"), ("counts", "edges", "lengths")]
)
def test_undo_never_brings_edges_of_other_data_back(opened: Opened, names: tuple[str, ...]) -> None:
    editor = opened()
    editor.handle(1).focus()
    editor.page.keyboard.press("ArrowRight")
    editor.answer()
    values: dict[str, Any] = OTHER | {"edges": [2, 30]}
    editor.receive(**{name: values[name] for name in names})
    editor.says(2, 30)
    expect(editor.root.get_by_label("undo")).to_be_disabled()
    editor.page.keyboard.press("Control+z")
    editor.says(2, 30)
    # from here on it is as ever: what Python chooses is a step
    editor.receive(edges=[5, 30])
    editor.says(5, 30)
    editor.page.keyboard.press("Control+z")
    editor.says(2, 30)


def test_edges_that_come_after_their_data_are_a_start_too(opened: Opened) -> None:
    editor = opened()
    editor.receive(**OTHER)
    editor.receive(edges=[2, 30])
    editor.says(2, 30)
    expect(editor.root.get_by_label("undo")).to_be_disabled()
    editor.receive(edges=[5, 30])
    expect(editor.root.get_by_label("undo")).to_be_enabled()


def test_no_handle_stands_outside_the_picture(opened: Opened) -> None:
    editor = opened(lengths=[20, 50], counts=[1, 1], edges=[20, 50], log_axis=True)

    def are_inside() -> bool:
        box = box_of(editor.root.locator("svg"))
        places = [editor.grip(handle)[0] for handle in editor.root.locator(".handle").all()]
        return all(box["x"] <= place <= box["x"] + box["width"] for place in places)

    twin = editor.root.get_by_label("bucket edges as text")
    for text in ("3, 20, 900", "20, 50", "1, 2, 3"):
        twin.fill(text)
        twin.press("Enter")
        editor.says(*map(int, text.split(",")))
        assert are_inside(), text
    editor.answer()
    editor.receive(edges=[7, 400], max_length=2)
    editor.says(7, 400)
    assert are_inside()
    editor.handle(1).focus()
    editor.page.keyboard.press("Home")
    editor.says(1, 400)
    assert are_inside()


def test_the_optimum_of_another_cap_is_not_compared(opened: Opened) -> None:
    curve = [10_000, 6_000, 5_000]
    editor = opened(optimum={"edges": [33, 66, 100], "curve": curve, "cap": None})
    values = editor.root.locator(".values")
    expect(values).to_contain_text("above the optimum")
    editor.receive(max_length=90)
    expect(values).not_to_contain_text("optim")
    editor.receive(optimum={"edges": [30, 60, 90], "curve": curve, "cap": 90})
    expect(values).to_contain_text("above the optimum")


# --- keys


@pytest.mark.parametrize("kind", ["edge", "cap"])
def test_every_key_of_a_slider_moves_within_what_the_slider_says(opened: Opened, kind: str) -> None:
    editor = opened(snap=8, max_length=64, edges=[10, 40, 70])
    handle = editor.handle(2) if kind == "edge" else editor.cap
    least, most = (16, 64) if kind == "edge" else (8, 100)
    expect(handle).to_have_attribute("aria-valuemin", str(least))
    expect(handle).to_have_attribute("aria-valuemax", str(most))
    handle.focus()
    now = 40 if kind == "edge" else 64
    for key, by in (("ArrowRight", 8), ("ArrowUp", 8), ("ArrowLeft", -8), ("PageUp", 8), ("PageDown", -8)):
        editor.page.keyboard.press(key)
        now += by
        expect(handle).to_have_attribute("aria-valuenow", str(now))
    for key, end in (("End", most), ("PageUp", most), ("Home", least), ("PageDown", least), ("ArrowDown", least)):
        editor.page.keyboard.press(key)
        expect(handle).to_have_attribute("aria-valuenow", str(end))
    assert editor.focused() == ("bucket edge 2 of 3" if kind == "edge" else "longest length kept")


def test_the_focus_stays_in_the_editor_when_its_edge_is_deleted(opened: Opened) -> None:
    editor = opened(max_length=100)
    editor.handle(3).focus()
    editor.page.keyboard.press("Delete")
    editor.says(10, 40)
    assert editor.focused() == "bucket edge 2 of 2"
    editor.page.keyboard.press("Tab")
    assert editor.focused() == "longest length kept"
    editor.receive(log_axis=True)  # drawn anew
    assert editor.focused() == "longest length kept"
    editor.handle(1).focus()
    button = editor.root.get_by_role("button", name="− edge")
    button.focus()
    editor.page.keyboard.press("Enter")
    editor.says(40)
    assert editor.focused() == "− edge"
    expect(button).to_be_disabled()
    editor.page.keyboard.press("Enter")
    editor.says(40)
    undo = editor.root.get_by_label("undo")
    undo.focus()
    for edges in ((10, 40), (10, 40, 100), (10, 40, 100)):
        editor.page.keyboard.press("Enter")
        editor.says(*edges)
        assert editor.focused() == "undo"


def test_keys_of_the_page_go_on_to_it_and_plain_ones_do_not(opened: Opened) -> None:
    editor = opened()
    editor.page.evaluate(
        "() => { window.heard = []; document.onkeydown = (e) => { heard.push(e.key); e.preventDefault(); }; }"
    )
    editor.handle(1).focus()
    for key in ("b", "Control+s", "ArrowRight", "Control+z", "Shift+Enter", "Control+Shift+c", "Alt+ArrowRight"):
        editor.page.keyboard.press(key)
    heard = editor.page.evaluate("heard.filter(key => !['Control', 'Shift', 'Alt'].includes(key))")
    assert heard == ["s", "ArrowRight"]
    editor.says(10, 40, 100)


# --- double-click


def test_a_double_click_adds_an_edge_but_not_on_a_handle(opened: Opened) -> None:
    editor = opened(max_length=80)
    for handle in (editor.handle(2), editor.cap):
        x, y = editor.grip(handle)
        for by in (-8, -6, 6, 8):
            editor.page.mouse.dblclick(x + by, y)
            editor.page.mouse.dblclick(x + by, y + 60)
        editor.says(10, 40, 100)
    x, y = editor.grip(editor.handle(2))
    editor.page.mouse.dblclick(x + 40, y + 60)
    expect(editor.root.locator(".handle.edge")).to_have_count(4)


# --- what is said

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
    editor.receive(**OTHER, edges=[2, 30])  # the text still has the focus
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
