"""The editor as a hand uses it: the numbers follow during the drag, and Python ends up with what is shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.conftest import shot
from tests.ui.jupyter import cell_value, wait_idle
from tests.ui.panel import reset

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

OPTIMAL = "35,66,112,168,236,307,414,737"


@pytest.fixture
def editor(shared_panel_page: Page) -> Locator:
    """The editor with the optimal edges, no cap, as at the start; one page serves all tests."""
    panel = shared_panel_page.locator(".labkit-panel")
    panel.get_by_label("cap", exact=True).uncheck()
    found = panel.locator(".labkit-editor")
    found.get_by_label("snap").select_option("1")
    found.get_by_label("log axis").check()
    found.get_by_label("bucket edges as text").fill(OPTIMAL)
    found.get_by_label("bucket edges as text").press("Enter")
    expect(found).to_have_attribute("data-edges", OPTIMAL)
    expect_agreement(found)
    buckets = panel.locator(".widget-slider", has=shared_panel_page.get_by_text("buckets", exact=True))
    expect(buckets.locator(".widget-readout")).to_have_text("8", timeout=20_000)  # the hand rests: its twin follows
    return found


def instant(editor: Locator) -> float:
    """The padding computed in the browser."""
    return float(editor.locator(".padding").get_attribute("data-value") or "nan")


def live(editor: Locator) -> Locator:
    """The same figure as Python computed it."""
    return cell_value(editor.page.locator(".labkit-panel"), "bucket_rows", "padding_ratio")


def edges(editor: Locator) -> list[int]:
    return [int(edge) for edge in (editor.get_attribute("data-edges") or "").split(",")]


def handle(editor: Locator, number: int) -> Locator:
    return editor.locator(".handle.edge").nth(number - 1)


def expect_agreement(editor: Locator) -> None:
    """Python has answered the newest change, and says the same padding to the last digit."""
    editor.page.wait_for_function(
        """editor => {
          const row = ".labkit-panel tr[data-strategy='bucket_rows']";
          const cell = document.querySelector(`${row} td[data-figure='padding_ratio']`);
          return cell !== null && editor.querySelector(".padding")?.dataset.value === cell.dataset.value;
        }""",
        arg=editor.element_handle(),
        timeout=20_000,
    )


def grip(editor: Locator, number: int) -> tuple[float, float]:
    box = handle(editor, number).locator(".grip").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_numbers_follow_during_the_drag_and_escape_takes_it_back(editor: Locator) -> None:
    page = editor.page
    assert instant(editor) == pytest.approx(0.1810, abs=5e-5)
    expect_agreement(editor)
    x, y = grip(editor, 3)
    page.mouse.move(x, y)
    page.mouse.down()
    seen = []
    for step in range(1, 6):
        page.mouse.move(x + 12 * step, y)
        expect(editor).not_to_have_attribute("data-edges", ",".join(map(str, seen[-1][0])) if seen else OPTIMAL)
        seen.append((edges(editor), instant(editor)))
    # the button is still down: five different edges, each with its own padding, worse and worse
    assert [shown[0][2] for shown in seen] == sorted({shown[0][2] for shown in seen})
    assert [shown[1] for shown in seen] == sorted(shown[1] for shown in seen)
    expect(editor.locator(".values")).to_contain_text("above the optimum")
    expect_agreement(editor)
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(editor).to_have_attribute("data-edges", OPTIMAL)
    expect(editor.locator(".values")).to_contain_text("optimal")
    expect_agreement(editor)


def test_an_edge_stops_at_its_neighbour_and_a_drag_is_one_step_of_undo(editor: Locator) -> None:
    page = editor.page
    x, y = grip(editor, 2)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 900, y, steps=12)
    page.mouse.up()
    assert edges(editor)[1] == 111
    expect_agreement(editor)
    # the twin in the left column follows
    row = page.locator(".labkit-panel .widget-hbox", has=page.get_by_text("edge 2", exact=True)).last
    expect(row.locator("input[type=text], input[type=number]")).to_have_value("111", timeout=20_000)
    page.keyboard.press("Control+z")
    expect(editor).to_have_attribute("data-edges", OPTIMAL)
    page.keyboard.press("Control+y")
    assert edges(editor)[1] == 111


def test_keys_move_add_and_delete_and_never_reach_the_notebook(editor: Locator) -> None:
    page = editor.page
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    first = handle(editor, 1)
    first.focus()
    for key, edge in (
        ("ArrowRight", 36), ("ArrowUp", 37), ("ArrowLeft", 36), ("Shift+ArrowRight", 46), ("PageUp", 51),
        ("End", 65), ("Home", 1),
    ):  # fmt: skip
        page.keyboard.press(key)
        expect(first).to_have_attribute("aria-valuenow", str(edge))
    expect(first).to_have_attribute("aria-valuetext", re.compile(r"^1 event; \d+ % of the users, \d+ % padding"))
    page.keyboard.press("b")  # would insert a cell
    with page.expect_request(lambda request: request.method == "PUT" and "/api/contents/" in request.url):
        page.keyboard.press("Control+s")  # is the notebook's own: it is saved
    page.keyboard.press("Delete")
    assert edges(editor) == [66, 112, 168, 236, 307, 414, 737]
    page.keyboard.press("+")
    assert len(edges(editor)) == 8
    expect_agreement(editor)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "bucket edge 2 of 8"


def test_text_twin_double_click_snap_and_axis(editor: Locator) -> None:
    page = editor.page
    twin = editor.get_by_label("bucket edges as text")
    twin.fill("100, 20 737")
    twin.press("Enter")
    expect(editor).to_have_attribute("data-edges", "20,100,737")
    expect_agreement(editor)
    twin.fill("20, 1x")
    twin.press("Enter")
    expect(editor.locator(".problem")).to_have_text('"1x" is not a whole number of 1 or more.')
    expect(editor).to_have_attribute("data-edges", "20,100,737")
    editor.get_by_label("snap").select_option("8")
    bars = editor.locator("svg").bounding_box()
    assert bars is not None
    page.mouse.dblclick(bars["x"] + 0.55 * bars["width"], bars["y"] + 150)
    expect(editor.locator(".handle.edge")).to_have_count(4)
    new = next(edge for edge in edges(editor) if edge not in (20, 100, 737))
    assert new % 8 == 0
    hundred = edges(editor).index(100) + 1
    place = grip(editor, hundred)[0]
    editor.get_by_label("log axis").uncheck()
    expect(editor).to_have_attribute("data-axis", "linear")
    assert grip(editor, hundred)[0] < place  # short lengths are crowded on the left of a linear axis
    expect_agreement(editor)


def test_the_cap_is_a_handle_with_its_losses(editor: Locator) -> None:
    page = editor.page
    panel = page.locator(".labkit-panel")
    panel.get_by_label("cap", exact=True).check()
    cap = editor.locator(".handle.cap")
    expect(cap).to_have_attribute("aria-valuenow", "737", timeout=20_000)
    cap.focus()
    for _ in range(10):
        page.keyboard.press("PageDown")
    expect(cap).to_have_attribute("aria-valuenow", "256")
    expect(editor.locator(".loss")).to_be_visible()
    expect_agreement(editor)
    lost = cell_value(panel, "bucket_rows", "events_lost")
    expect(lost).not_to_have_attribute("data-value", "0.0", timeout=20_000)


def test_a_second_view_shows_the_same_and_both_move_it(editor: Locator) -> None:
    page = editor.page
    page.locator(".jp-Notebook .jp-Cell").last.click()
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.type("panel.editor")
    page.keyboard.press("Shift+Enter")
    second = page.locator(".jp-OutputArea .labkit-editor").nth(1)
    expect(second).to_have_attribute("data-edges", OPTIMAL, timeout=30_000)
    wait_idle(page)
    handle(second, 1).focus()
    page.keyboard.press("ArrowRight")
    first = editor.first
    expect(first).to_have_attribute("data-edges", OPTIMAL.replace("35", "36"), timeout=20_000)
    handle(first, 1).focus()
    page.keyboard.press("ArrowRight")
    expect(second).to_have_attribute("data-edges", OPTIMAL.replace("35", "37"), timeout=20_000)


def test_scrolled_away_and_back_it_still_works(editor: Locator) -> None:
    page = editor.page
    page.locator(".jp-Notebook .jp-Cell").first.evaluate("e => e.scrollIntoView()")
    page.wait_for_timeout(300)
    editor.evaluate("e => e.scrollIntoView()")
    handle(editor, 1).focus()
    page.keyboard.press("ArrowRight")
    assert edges(editor)[0] == 36
    expect_agreement(editor)


def test_head_clicks_sort_the_table_and_the_order_stays(editor: Locator) -> None:
    panel = editor.page.locator(".labkit-panel")
    names = lambda: [r.get_attribute("data-strategy") for r in panel.locator("tr[data-strategy]").all()]  # noqa: E731
    assert names()[0] == "pad_max"
    head = panel.locator("thead th", has_text="batches")
    head.click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert names()[0] == "packed"
    handle(editor, 1).focus()
    editor.page.keyboard.press("ArrowRight")
    expect_agreement(editor)
    assert names()[0] == "packed"
    head.click()
    assert names()[-1] == "packed"
    head.click()
    assert names()[0] == "pad_max"


def swipe(editor: Locator, start: tuple[float, float], by: tuple[float, float], steps: int = 12) -> None:
    """One finger, put down, moved in a straight line, lifted."""
    session = editor.page.context.new_cdp_session(editor.page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": start[0], "y": start[1]}]})
    for step in range(1, steps + 1):
        x, y = (at + length * step / steps for at, length in zip(start, by, strict=True))
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def top_of(editor: Locator) -> float:
    box = editor.bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.parametrize("by", [(60, -60), (60, 60), (-40, 120)])
def test_a_finger_drags_an_edge_in_whatever_direction_it_goes(editor: Locator, by: tuple[int, int]) -> None:
    top = top_of(editor)
    (x, y), before = grip(editor, 3), edges(editor)
    swipe(editor, (x, y), by)
    expect(editor.locator(".held")).to_have_count(0)
    expect(editor).not_to_have_attribute("data-edges", OPTIMAL)
    assert grip(editor, 3)[0] == pytest.approx(x + by[0], abs=4)  # an edge is a whole number: some pixels wide
    assert [edge for i, edge in enumerate(edges(editor)) if i != 2] == [*before[:2], *before[3:]]
    assert top_of(editor) == top
    expect_agreement(editor)


def test_a_finger_beside_the_handles_scrolls_the_page(editor: Locator) -> None:
    top = top_of(editor)
    places = [grip(editor, number)[0] for number in (1, 2)]
    swipe(editor, (sum(places) / 2, grip(editor, 1)[1] + 60), (0, -90))
    editor.page.wait_for_function(
        "([e, top]) => e.getBoundingClientRect().y < top - 40", arg=[editor.element_handle(), top]
    )
    assert edges(editor) == [int(edge) for edge in OPTIMAL.split(",")]
    editor.evaluate("e => e.closest('.labkit-panel').scrollIntoView({block: 'start'})")


def test_what_is_refused_reads_as_in_the_table(editor: Locator) -> None:
    panel = editor.page.locator(".labkit-panel")
    twin = editor.get_by_label("bucket edges as text")
    twin.fill("35, 500")
    twin.press("Enter")
    problem = editor.locator(".problem")
    expect(problem).to_contain_text("longest length 737 > last bucket edge 500")
    words = problem.inner_text()
    assert "raise the last edge, set max_length" in words
    expect(panel.locator("tr[data-strategy='bucket_budget']")).to_contain_text(words, timeout=20_000)
    expect(editor.locator(".padding")).to_have_count(0)
    panel.get_by_label("overflow", exact=True).select_option(label="drop")
    expect(editor.locator(".loss")).to_contain_text("of users dropped", timeout=20_000)
    expect(editor.locator(".values")).not_to_contain_text("optim")
    expect(problem).to_be_empty()
    expect_agreement(editor)
    panel.get_by_label("overflow", exact=True).select_option(label="error")
    expect(problem).to_have_text(words, timeout=20_000)


def test_undo_stays_within_the_data_set(editor: Locator) -> None:
    panel = editor.page.locator(".labkit-panel")
    handle(editor, 1).focus()
    editor.page.keyboard.press("ArrowRight")
    expect_agreement(editor)
    data = panel.get_by_label("data", exact=True)
    data.select_option(label=next(text for text in data.locator("option").all_inner_texts() if "cdnow" in text))
    expect(editor).not_to_have_attribute("data-edges", OPTIMAL.replace("35", "36"), timeout=20_000)
    expect(editor.locator(".tick", has_text="737")).to_have_count(0, timeout=20_000)
    expect_agreement(editor)
    shown = editor.get_attribute("data-edges") or ""
    expect(editor.get_by_label("undo")).to_be_disabled()
    handle(editor, 1).focus()
    editor.page.keyboard.press("Control+z")
    expect(editor).to_have_attribute("data-edges", shown)
    reset(panel)


#: What has to stand out: where, which property, and how much (WCAG 2: 4.5 for text, 3 for lines, marks and focus).
STANDS_OUT = [
    *((place, "fill", 4.5) for place in (".handle.edge .number", ".handle.cap .number", ".tick", ".pad")),
    *((place, "color", 4.5) for place in (".values", ".loss", ".problem", ".tier", ".key", ".twin", ".tools label")),
    (".numbers::after", "color", 4.5),
    *((place, "fill", 3) for place in (".bar", ".optimum", ".room", ".handle.edge .grip", ".handle.cap .grip")),
    *((place, "stroke", 3) for place in (".events", ".handle.edge line", ".handle.cap line", ".handle:focus .grip")),
    (".twin input:focus-visible", "outline-color", 3),
]

CONTRASTS = """
(editor, asked) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const painted = (...colours) => { // one over the other
    canvas.clearRect(0, 0, 1, 1);
    for (const [colour, opacity] of colours) {
      canvas.globalAlpha = opacity;
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const above = (element) => (element ? [...above(element.parentElement), element] : []);
  return asked.map(([place, property, least]) => {
    const [selector, pseudo] = place.split("::");
    if (selector.includes(":focus")) editor.querySelector(selector.split(/ |:/)[0] === ".twin" ? "input[type=text]"
      : ".handle").focus();
    const element = editor.querySelector(selector);
    if (!element) return `${place} is not there`;
    const colour = getComputedStyle(element, pseudo ? `::${pseudo}` : null)[property];
    const grounds = above(element).map((e) => [getComputedStyle(e).backgroundColor, 1]);
    const opacity = above(element).reduce((product, e) => product * Number(getComputedStyle(e).opacity), 1);
    const [ground, ink] = [painted(...grounds), painted(...grounds, [colour, opacity])].map(luminance);
    const ratio = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
    return ratio >= least ? null : `${place}: ${colour} has ${ratio.toFixed(2)} of ${least}`;
  }).filter(Boolean);
}
"""


def test_everything_stands_out_from_the_ground_in_light_and_dark(editor: Locator) -> None:
    page = editor.page
    page.locator(".labkit-panel").get_by_label("cap", exact=True).check()
    editor.locator(".handle.cap").focus()
    page.keyboard.press("PageDown")
    expect(editor.locator(".loss")).to_be_visible()
    expect_agreement(editor)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.locator(".lm-MenuBar-item", has_text="Settings").first.click()
        page.locator(".lm-Menu-itemLabel", has_text="Theme").first.hover()
        page.locator(".lm-Menu-itemLabel", has_text=theme).first.click()
        expect(page.locator(f"body[data-jp-theme-name='{theme}']")).to_be_attached(timeout=20_000)
        editor.evaluate("e => e.classList.add('late')")
        page.keyboard.press("Escape")
        assert editor.evaluate(CONTRASTS, STANDS_OUT) == [], theme
        editor.evaluate("e => e.classList.remove('late')")
        shot(page, f"editor-{theme.split()[1].lower()}")
