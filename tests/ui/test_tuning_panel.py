"""Notebook 01 as a newcomer uses it: every number asserted here was computed by Python and came through the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from labkit.config import TunedConfig
from tests.ui.conftest import shot
from tests.ui.inside import nodes_of_widgets, widgets_of_kernel, widgets_of_page
from tests.ui.jupyter import cell_value, expect_changed
from tests.ui.panel import edge_field, edge_row, padding, reset, type_edge, value

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture
def panel(shared_panel_page: Page) -> Locator:
    """The panel as it opens; one page serves all tests."""
    found = shared_panel_page.locator(".labkit-panel")
    reset(found)
    return found


def test_newcomer_moves_an_edge_goes_back_to_the_optimum_and_exports(panel: Locator, workspace: Path) -> None:
    assert round(value(padding(panel)), 4) == 0.1810
    assert panel.locator("tr[data-strategy]").count() == 11

    # drag the slider of edge 3 to the right: the padding gets worse
    before = padding(panel).get_attribute("data-value") or ""
    handle = edge_row(panel, 3).locator(".noUi-handle")
    box = handle.bounding_box()
    assert box is not None
    panel.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    panel.page.mouse.down()
    panel.page.mouse.move(box["x"] + 12, box["y"] + box["height"] / 2, steps=4)
    expect_changed(padding(panel), before)  # the button is still down
    panel.page.mouse.up()
    assert value(padding(panel)) > 0.1811

    # the text field takes the exact number, and the picture follows
    type_edge(panel, 3, 140)
    expect(panel.locator(".handle .number", has_text="140")).to_be_visible(timeout=20_000)

    panel.get_by_role("button", name="Optimal edges").click()
    expect(edge_field(panel, 3)).to_have_value("112", timeout=20_000)
    expect(padding(panel)).to_have_attribute("data-value", before, timeout=20_000)

    panel.get_by_role("button", name="Export").last.click()
    expect(panel.locator(".labkit-answer")).to_contain_text("Saved", timeout=20_000)
    saved = next(workspace.glob("test_tuning_panel/results/tuned.json"))
    tuned = TunedConfig.load(saved)
    assert tuned.batch_policy.bucket_edges == (35, 66, 112, 168, 236, 307, 414, 737)
    assert json.loads(saved.read_text())["figures"]["padding_ratio"]["value"] == float(before)


def test_a_field_that_is_set_and_exported_at_once_is_in_the_file(panel: Locator, workspace: Path) -> None:
    budget = panel.locator(".labkit-field").get_by_label("token budget", exact=True)
    path = panel.get_by_label("file", exact=True)
    first = path.input_value()
    for tokens in (8_000, 9_001, 7_002, 12_003, 5_004):
        name = f"tuned-{tokens}.json"
        path.fill(f"../results/{name}")
        budget.fill(str(tokens))
        panel.get_by_role("button", name="Export").last.click()
        expect(panel.locator(".labkit-answer")).to_contain_text(name, timeout=20_000)
        saved = workspace / "test_tuning_panel" / "results" / name
        policy = TunedConfig.load(saved).batch_policy
        assert policy.token_budget == tokens
    path.fill(first)
    path.press("Enter")


def test_errors_are_read_in_the_panel_and_mended_there(panel: Locator) -> None:
    type_edge(panel, 8, 500)
    row = panel.locator("tr[data-strategy='bucket_budget']")
    expect(row).to_contain_text("longest length 737 > last bucket edge 500 (5 of 943", timeout=20_000)
    assert value(padding(panel, "pad_max")) > 0.85  # the other strategies stay
    panel.get_by_label("overflow").select_option("truncate")
    expect(cell_value(panel, "bucket_budget", "events_lost")).to_be_visible(timeout=20_000)
    assert value(cell_value(panel, "bucket_budget", "sequences_truncated")) == pytest.approx(5 / 943)


def test_other_data_and_a_file_that_is_not_there(panel: Locator) -> None:
    panel.get_by_label("data", exact=True).select_option(label="cdnow: CDNOW, transactions of a customer")
    expect(edge_field(panel, 8)).to_have_value("217", timeout=20_000)
    expect(padding(panel)).to_have_attribute("data-value", re.compile(r"^0\.184[56]"), timeout=20_000)
    panel.get_by_role("button", name="Quantile edges").click()
    expect(panel.locator(".labkit-message")).to_contain_text("8 buckets asked, 5 left", timeout=20_000)
    assert round(value(padding(panel)), 4) == 0.8968

    panel.get_by_label("data", exact=True).select_option(label="a file of yours")
    panel.get_by_label("path").fill("nowhere.csv")
    panel.get_by_role("button", name="Open file").click()
    expect(panel.locator(".labkit-message")).to_contain_text("nowhere.csv", timeout=20_000)


def test_what_is_kept_is_compared_and_brought_back(panel: Locator) -> None:
    panel.get_by_role("button", name="Keep A", exact=True).click()
    compared = panel.locator(".labkit-compared tr[data-row='slots'] td")
    expect(compared).to_have_text(["122 ke", "122 ke", "="], timeout=20_000)
    type_edge(panel, 3, 140)
    expect(compared.nth(2)).to_have_text("+1.8 %", timeout=20_000)
    panel.get_by_role("button", name="Restore A", exact=True).click()
    expect(compared.nth(2)).to_have_text("=", timeout=20_000)
    expect(edge_field(panel, 3)).to_have_value("112", timeout=20_000)


def test_two_hundred_moves_leave_as_many_widgets_as_before(panel: Locator) -> None:
    page, editor = panel.page, panel.locator(".labkit-editor")
    count = lambda: (widgets_of_kernel(page), widgets_of_page(page), nodes_of_widgets(page))  # noqa: E731
    handle = editor.locator(".handle.edge").first
    handle.focus()
    page.keyboard.press("ArrowRight")
    expect(handle).to_have_attribute("aria-valuenow", "36")
    before = count()
    assert min(before) > 50
    for i in range(200):
        page.keyboard.press("ArrowLeft" if i % 2 else "ArrowRight")
    expect(handle).to_have_attribute("aria-valuenow", "36")
    sought = editor.locator(".padding").get_attribute("data-value") or ""
    expect(padding(panel, "bucket_rows")).to_have_attribute("data-value", sought, timeout=20_000)
    assert count() == before


def test_figures_fill_their_cell_in_light_and_dark(panel: Locator) -> None:
    page = panel.page
    plot = panel.locator(".labkit-editor svg")
    table = panel.locator(".labkit-table-box").last
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.locator(".lm-MenuBar-item", has_text="Settings").first.click()
        page.locator(".lm-Menu-itemLabel", has_text="Theme").first.hover()
        page.locator(".lm-Menu-itemLabel", has_text=theme).first.click()
        expect(page.locator(f"body[data-jp-theme-name='{theme}']")).to_be_attached(timeout=20_000)
        widths = [locator.evaluate("e => e.getBoundingClientRect().width") for locator in (plot, table)]
        assert widths[0] == pytest.approx(widths[1], rel=0.03)
        # the table's text stands out from the ground behind it
        seen = table.evaluate(
            "e => [getComputedStyle(e.querySelector('td')).color,"
            " getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor]"
        )
        light = [sum(int(float(x)) for x in c[c.index("(") + 1 : c.index(")")].split(",")[:3]) / 3 for c in seen]
        assert abs(light[0] - light[1]) > 100
        shot(page, f"panel-{theme.split()[1].lower()}")
