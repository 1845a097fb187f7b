"""The editor without a notebook: pointers, keys, and what Python may say in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.lone_editor import LoneEditor, Opened, box_of, lone_page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    with lone_page(browser) as page:
        yield lambda **state: LoneEditor(page, **state)


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


def test_other_data_with_the_same_edges_is_a_start_too(opened: Opened) -> None:
    editor = opened()
    editor.receive(lengths=[3, 90, 100], counts=[1, 1, 1], edges=[10, 40, 100])
    expect(editor.root.get_by_label("undo")).to_be_disabled()
    editor.receive(edges=[20, 60, 100])
    expect(editor.root.get_by_label("undo")).to_be_enabled()
    editor.root.get_by_label("undo").click()
    editor.says(10, 40, 100)


def test_other_data_with_more_edges_under_the_hand_is_shown(opened: Opened) -> None:
    editor = opened()
    x, y = editor.take(editor.handle(2))
    editor.page.mouse.move(x + 20, y)
    editor.receive(**OTHER, edges=[1, 2, 5, 30])
    editor.says(1, 2, 5, 30)
    expect(editor.root.locator(".handle.edge")).to_have_count(4)
    editor.page.mouse.up()
    editor.handle(3).focus()
    editor.page.keyboard.press("ArrowRight")
    editor.says(1, 2, 6, 30)


def test_edges_typed_and_a_handle_pressed_at_once_are_taken(opened: Opened) -> None:
    editor = opened()
    twin = editor.root.get_by_label("bucket edges as text")
    twin.fill("20, 100")  # fewer: the handles are drawn anew in the middle of the press
    x, y = editor.take(editor.handle(1))
    editor.says(20, 100)
    editor.page.mouse.move(x + 60, y)
    editor.page.mouse.up()
    expect(editor.root.locator(".held")).to_have_count(0)
    assert editor.focused() == "bucket edge 1 of 2"
    editor.answer()
    assert editor.page.evaluate("sent.at(-1).edges") == [20, 100]


def test_escape_of_a_drag_keeps_what_was_typed_before_it(opened: Opened) -> None:
    editor = opened()
    editor.root.get_by_label("bucket edges as text").fill("10, 50, 100")
    x, y = editor.take(editor.handle(1))
    editor.page.mouse.move(x + 60, y)
    editor.page.keyboard.press("Escape")
    editor.says(10, 50, 100)
    editor.page.mouse.up()
    editor.page.keyboard.press("Control+z")
    editor.says(10, 40, 100)


def test_optimal_edges_follow_the_cap_under_the_hand(opened: Opened) -> None:
    editor = opened(max_length=80)
    x, y = editor.take(editor.cap)
    editor.page.mouse.move(x - 60, y)
    assert "edges" in editor.page.evaluate("sent.at(-1)")
    cap = editor.page.evaluate("model.get('max_length')")
    editor.receive(edges=[20, 50, cap], answered=editor.page.evaluate("model.get('seq')"))
    editor.says(20, 50, cap)
    expect(editor.root.locator(".held")).to_have_count(1)
    editor.page.mouse.move(x - 90, y)
    expect(editor.cap).not_to_have_attribute("aria-valuenow", str(cap))
    editor.says(20, 50, cap)
    editor.answer()
    editor.page.mouse.up()
    editor.page.keyboard.press("Control+z")  # one step, edges and cap
    editor.says(10, 40, 100)
    expect(editor.cap).to_have_attribute("aria-valuenow", "80")


def test_edges_that_come_after_the_cap_was_let_go_are_not_sent_back(opened: Opened) -> None:
    editor = opened(max_length=80)
    x, y = editor.take(editor.cap)
    editor.page.mouse.move(x - 40, y)
    editor.page.mouse.move(x - 80, y)  # waits for the answer to the first
    editor.page.mouse.up()
    editor.receive(edges=[20, 50, 70], answered=1)
    expect(editor.root).to_have_attribute("data-answered", "1")
    assert editor.page.evaluate("[model.get('seq'), model.get('edges')]") == [2, [20, 50, 70]]
    editor.receive(edges=[18, 48, 66], answered=2)
    editor.says(18, 48, 66)


def test_an_edge_moved_before_a_cap_is_not_taken_back(opened: Opened) -> None:
    editor = opened(max_length=80)
    editor.handle(1).focus()
    editor.page.keyboard.press("ArrowRight")
    editor.page.keyboard.press("ArrowRight")  # waits for the answer to the first
    editor.take(editor.cap)
    editor.page.evaluate("model.set({answered: 1})")
    editor.says(12, 40, 100)
    editor.page.mouse.up()
    editor.answer()
    editor.says(12, 40, 100)


def test_a_cap_that_was_not_moved_here_is_not_sent(opened: Opened) -> None:
    editor = opened(max_length=80)
    x, y = editor.take(editor.handle(1))
    editor.receive(max_length=60)  # typed elsewhere while the hand is on a handle
    editor.page.mouse.move(x + 20, y)
    assert editor.page.evaluate("model.get('max_length')") == 60
    editor.page.mouse.up()
    editor.answer()
    expect(editor.cap).to_have_attribute("aria-valuenow", "60")


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
