"""Models, measuring and gauges as a hand uses them: modelled and measured figures side by side, never mixed."""

from __future__ import annotations

import re
import time

import psutil
import pytest
from playwright.sync_api import Locator, Page, expect

from labkit.errors import DeviceError
from labkit.gpu.nvml import NvmlSession
from tests.ui.conftest import shot
from tests.ui.jupyter import JupyterLab, cell_value, expect_changed
from tests.ui.measuring import TIMED
from tests.ui.panel import OPTIMAL, reset, thread_names, value

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

DIN = "DIN: attention of a candidate item over the history"


@pytest.fixture
def panel(shared_panel_page: Page) -> Locator:
    found = shared_panel_page.locator(".labkit-panel")
    reset(found)
    return found


def seconds(panel: Locator, text: str) -> None:
    panel.get_by_label("seconds each").fill(text)
    panel.get_by_label("seconds each").press("Enter")


def button(panel: Locator, name: str) -> Locator:
    return panel.get_by_role("button", name=name, exact=True)


def measuring_children(lab: JupyterLab) -> int:
    """Processes that measure, of all kernels of the server."""
    found = 0
    for child in psutil.Process(lab.pid).children(recursive=True):
        try:
            found += any("measure_child" in part for part in child.cmdline())
        except psutil.NoSuchProcess:
            continue
    return found


def samplers(panel: Locator) -> list[str]:
    """The kernel's threads that read gauges."""
    return [name for name in thread_names(panel) if name in ("labkit-gauges", "labkit-sampler")]


def has_gpu() -> bool:
    """Whether the driver names a GPU here."""
    try:
        with NvmlSession() as session:
            return bool(session.devices)
    except DeviceError:
        return False


def test_a_model_and_a_gpu_add_modelled_figures_that_follow_the_hand(panel: Locator) -> None:
    panel.get_by_label("model", exact=True).select_option(label=DIN)
    group = panel.locator("tr.groups th", has_text="modelled: din, training")
    expect(group).to_be_visible(timeout=20_000)
    launches = cell_value(panel, "bucket_budget", "launches")
    expect(launches).to_have_attribute("data-value", re.compile(r"^\d+$"), timeout=60_000)
    expect(launches.locator("sup.modelled")).to_have_text("m")
    panel.get_by_label("modelled GPU").select_option(label="H100")
    time_s = cell_value(panel, "bucket_budget", "time_s")
    expect(time_s).to_be_visible(timeout=20_000)
    expect(cell_value(panel, "bucket_budget", "bound")).to_have_attribute(
        "data-value", re.compile("launch|compute|band")
    )
    # what the model does not take is empty, with the reason
    expect(panel.locator("tr[data-strategy='rnn_packed'] td[data-figure='time_s']")).to_have_attribute(
        "title", re.compile("model din does not take the packed_sequence layout")
    )
    before = time_s.get_attribute("data-value") or ""
    handle = panel.locator(".labkit-editor .handle.edge").nth(2)
    handle.focus()
    for _ in range(4):
        panel.page.keyboard.press("PageUp")
    expect_changed(time_s, before)
    shot(panel.page, "panel-modelled")


def test_measured_figures_are_beside_the_modelled_and_go_stale(panel: Locator, lab: JupyterLab) -> None:
    panel.get_by_label("model", exact=True).select_option(label=DIN)
    panel.get_by_label("what", exact=True).select_option(label="bucket_rows")
    seconds(panel, "4")  # every width of the buckets is to be timed
    button(panel, "Measure").click()
    measured = cell_value(panel, "bucket_rows", "measured_events_per_s")
    expect(measured).to_be_visible(timeout=90_000)
    assert value(measured) > 0
    expect(measured.locator("sup.measured")).to_have_text("✓")
    expect(panel.locator(".labkit-measured")).to_contain_text("1 of 1 strategies measured", timeout=20_000)
    expect(button(panel, "Cancel")).to_be_disabled()
    assert measuring_children(lab) == 0
    expect(measured).not_to_have_class(re.compile("stale"))
    panel.locator(".labkit-editor .handle.edge").first.focus()
    panel.page.keyboard.press("ArrowRight")
    expect(measured).to_have_class(re.compile("stale"), timeout=20_000)
    shot(panel.page, "panel-measured")
    panel.page.keyboard.press("ArrowLeft")
    expect(panel.locator(".labkit-editor")).to_have_attribute("data-edges", OPTIMAL)
    expect(measured).not_to_have_class(re.compile("stale"), timeout=20_000)


def test_while_it_measures_the_table_follows_and_cancel_leaves_nothing_behind(panel: Locator, lab: JupyterLab) -> None:
    seconds(panel, "60")
    button(panel, "Measure").click()
    expect(button(panel, "Cancel")).to_be_enabled(timeout=20_000)
    expect(button(panel, "Measure")).to_be_disabled()
    expect(panel.locator(".labkit-measured")).to_contain_text(re.compile(r"pad_max \(1 of \d+\)"), timeout=90_000)
    expect(panel.locator(".labkit-progress")).to_have_text(TIMED, timeout=90_000)
    assert measuring_children(lab) == 1
    figure = cell_value(panel, "bucket_rows", "padding_ratio")
    before = figure.get_attribute("data-value") or ""
    panel.locator(".labkit-editor .handle.edge").first.focus()
    panel.page.keyboard.press("PageUp")
    expect_changed(figure, before)
    expect(button(panel, "Cancel")).to_be_enabled()
    button(panel, "Cancel").click()
    expect(button(panel, "Cancel")).to_be_disabled(timeout=20_000)
    expect(panel.locator(".labkit-measured")).to_contain_text("cancelled: 0 of", timeout=20_000)
    assert measuring_children(lab) == 0


def test_what_cannot_be_measured_is_an_alert_in_the_panel(panel: Locator) -> None:
    panel.get_by_label("what", exact=True).select_option(label="rnn_packed")
    button(panel, "Measure").click()
    alert = panel.locator(".labkit-measured [role=alert]")
    expect(alert).to_contain_text("model din does not take the packed_sequence layout", timeout=20_000)


def test_an_empty_gauge_says_why_and_the_strip_stops(panel: Locator) -> None:
    strip = panel.locator(".labkit-gauges")
    strip.scroll_into_view_if_needed()
    expect(strip.locator("[data-gauge='CPU'] .text")).to_have_text(re.compile(r"\d %$"), timeout=20_000)
    expect(strip.locator(".cost")).to_have_text(re.compile(r"costs .* of a core"))
    empty = strip.locator(".gauge.empty").all()
    assert empty or has_gpu()
    for gauge in empty:
        assert len(gauge.locator(".why").inner_text()) > 10
        assert (gauge.get_attribute("aria-valuetext") or "").startswith("no value: ")
    names = [gauge.get_attribute("data-gauge") for gauge in strip.locator(".gauge").all()]
    assert {"GPU", "SM-active", "time-active"} & set(names)
    strip.get_by_role("button").click()
    expect(strip).to_have_attribute("data-running", "false", timeout=20_000)
    number = strip.get_attribute("data-number")
    deadline = time.monotonic() + 20
    while (left := samplers(panel)) and time.monotonic() < deadline:
        panel.page.wait_for_timeout(100)
    assert left == []
    assert strip.get_attribute("data-number") == number
    strip.get_by_role("button").click()
    expect(strip).to_have_attribute("data-running", "true", timeout=20_000)
    expect(strip).not_to_have_attribute("data-number", number or "", timeout=20_000)
