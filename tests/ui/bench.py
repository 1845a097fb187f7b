"""How quickly the screen answers, in a real JupyterLab in Chromium: ``make bench-ui`` prints the table and its bars.

A move begins when the browser gets the input (``event.timeStamp``) and ends twice: when the changed number is in the
page, and when the frame that shows it has been produced; the time inside the handlers is given beside them. The bars
are on the number in the page. One move at a time, so that nothing is coalesced, except in the flood, in rounds; other
work on the machine counts into every figure, so the load average stands beside the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.ui.conftest import in_sight
from tests.ui.inside import heap_mb, kernel_mb, nodes_of_widgets, widgets_of_kernel, widgets_of_page
from tests.ui.jupyter import CHROMIUM_ARGS, ROOT, JupyterLab, open_notebook, run_all
from tests.ui.measuring import measuring
from tests.ui.moves import Hand, Move, p95, spread

NOTEBOOK = "01_tune_buckets.ipynb"
ROUNDS = 3
INSTANT_MS, LIVE_MS, LIVE_P95_MS = 16, 50, 100


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, and, where the figure has one, its bar and whether it is met."""

    what: str
    value: float
    bar: float | None
    unit: str
    detail: str

    @property
    def ok(self) -> bool:
        return self.bar is None or self.value <= self.bar


class Traffic:
    """Bytes of all websockets of a page."""

    def __init__(self, page: Page) -> None:
        self.sent = self.received = 0
        page.on("websocket", self._watch)

    def _watch(self, socket: Any) -> None:
        def size(payload: str | bytes) -> int:
            return len(payload if isinstance(payload, bytes) else payload.encode())

        def sent(payload: str | bytes) -> None:
            self.sent += size(payload)

        def received(payload: str | bytes) -> None:
            self.received += size(payload)

        socket.on("framesent", sent)
        socket.on("framereceived", received)


Rounds = list[list[Move]]


def in_rounds(hand: Hand, tier: str, moves: int, kind: str = "edge") -> Rounds:
    hand.moves(tier, 6, kind=kind)  # warm-up
    return [hand.moves(tier, max(2, moves // ROUNDS), kind=kind) for _ in range(ROUNDS)]


def picked(rounds: Rounds, figure: str) -> list[list[float]]:
    return [[getattr(move, figure) for move in moves] for moves in rounds]


def pooled(rounds: Rounds, figure: str) -> list[float]:
    return [getattr(move, figure) for moves in rounds for move in moves]


def instant_rows(rounds: Rounds, when: str = "") -> list[Row]:
    """The bar, and what of it is the browser's wait for its next frame, the handler, and painting."""
    bars = {"number": INSTANT_MS, "wait": None, "handler": None, "painted": None}
    names = {
        "number": "instant, input to number",
        "wait": "  of it: input to the handler's start",
        "handler": "  of it: handler",
        "painted": "instant, input to painted frame",
    }
    return [
        Row(f"{names[key]}{when}, p95", p95(pooled(rounds, key)), bar, "ms", spread(picked(rounds, key)))
        for key, bar in bars.items()
    ]


def live_rows(rounds: Rounds, what: str, times: int = 1, no_bar: str = "") -> list[Row]:
    number = pooled(rounds, "number")
    bar, bar_p95 = (None, None) if no_bar else (times * LIVE_MS, times * LIVE_P95_MS)
    why = f"; no bar: {no_bar}" if no_bar else ""
    why += f"; bar: {times} x that of a machine that does not measure" if times > 1 else ""
    return [
        Row(f"{what}, input to number, median", statistics.median(number), bar, "ms", f"n {len(number)}"),
        Row(f"{what}, p95", p95(number), bar_p95, "ms", spread(picked(rounds, "number")) + why),
        Row(
            f"{what}, input to painted frame, p95", p95(pooled(rounds, "painted")), None, "ms",
            spread(picked(rounds, "painted")),
        ),
    ]  # fmt: skip


def latency_rows(page: Page, hand: Hand, traffic: Traffic, moves: int) -> list[Row]:
    """The panel as it opens, at rest and while it measures."""
    instant = in_rounds(hand, "instant", moves)
    sent, received = traffic.sent, traffic.received
    live = in_rounds(hand, "live", moves)
    count = len(pooled(live, "number")) + 6
    up, down = (traffic.sent - sent) / count / 1e3, (traffic.received - received) / count / 1e3
    lag, shown = hand.flood(200)
    with measuring(page, seconds=3600):
        busy_instant = in_rounds(hand, "instant", moves)
        busy = in_rounds(hand, "live", moves)
    return [
        *instant_rows(instant),
        *instant_rows(busy_instant, ", Measure runs"),
        *live_rows(live, "live"),
        *live_rows(busy, "live, Measure runs", 2),
        Row("200 quick moves: last input to the last table", lag, 200, "ms", f"{shown} tables, none a second later"),
        Row("bytes up a move", up, 5, "KB", f"n {count}"),
        Row("bytes down a move", down, 5, "KB", f"n {count}"),
    ]


def memory_rows(page: Page, lab: JupyterLab, hand: Hand, moves: int) -> list[Row]:
    """What many moves leave behind."""
    counts = {
        "widgets in the kernel": widgets_of_kernel,
        "widget models in the page": widgets_of_page,
        "elements of widgets in the page": nodes_of_widgets,
    }
    hand.moves("live", 50)
    heap, kernel = heap_mb(page), kernel_mb(lab)
    before = {name: count(page) for name, count in counts.items()}
    for _ in range(max(1, moves // 100)):
        hand.moves("live", 100)
    detail = f"{max(1, moves // 100) * 100} moves"
    rows = [
        Row("JavaScript heap after many moves, more", heap_mb(page) - heap, 5, "MB", f"from {heap:.0f} MB, {detail}"),
        Row(
            "kernel memory after many moves, more", kernel_mb(lab) - kernel, 5, "MB", f"from {kernel:.0f} MB, {detail}"
        ),
    ]
    for name, count in counts.items():
        more = abs(count(page) - before[name])
        rows.append(Row(f"{name} after many moves, change", more, 0, "", f"from {before[name]}, {detail}"))
    return rows


def cap_rows(page: Page, hand: Hand, moves: int, what: str, no_bar: str = "") -> list[Row]:
    """The cap as a handle, from the middle of the axis, with optimal edges that follow it."""
    page.locator(".labkit-panel").get_by_role("button", name="Optimal edges").click()
    expect(page.locator(".labkit-editor .values")).to_contain_text("optimal", timeout=20_000)
    box = page.locator(".labkit-panel").get_by_label("cap", exact=True)
    box.check()
    cap = hand.handle("cap")
    cap.wait_for(state="visible", timeout=20_000)
    svg = page.locator(".labkit-editor svg").bounding_box()
    assert svg is not None
    x, y = hand.grip("cap")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(svg["x"] + 0.7 * svg["width"], y, steps=4)
    page.mouse.up()
    page.wait_for_function("() => labkitWatch.agrees()", timeout=20_000)
    rows = live_rows(in_rounds(hand, "live", moves, "cap"), f"live, cap, {what}", no_bar=no_bar)
    box.uncheck()
    expect(cap).to_have_count(0, timeout=20_000)
    page.wait_for_function("() => labkitWatch.agrees()", timeout=20_000)
    return rows


def large_rows(page: Page, hand: Hand, moves: int) -> list[Row]:
    """Data with as many distinct lengths as the panel offers: 20 million sequences, longest 65,536."""
    panel = page.locator(".labkit-panel")
    panel.get_by_label("data", exact=True).select_option(label="generated: power law")
    # a budget that the longest fits, so that no strategy is refused
    for name, number in (("longest", 65_536), ("sequences", 20_000_000), ("token budget", 131_072)):
        field = panel.locator(".labkit-field").get_by_label(name, exact=True)
        field.fill(str(number))
        field.press("Enter")
    expect(panel.locator(".labkit-editor .handle.edge").last).to_have_attribute(
        "aria-valuemax", "65536", timeout=60_000
    )
    expect(panel).to_contain_text("20.0 M", timeout=60_000)  # the summary
    page.wait_for_function("() => labkitWatch.agrees()", timeout=60_000)
    what = "65,536 lengths"
    return [
        *instant_rows(in_rounds(hand, "instant", moves), f", {what}"),
        *live_rows(in_rounds(hand, "live", moves), f"live, {what}"),
        *cap_rows(page, hand, moves, what, no_bar="under another cap tens of thousands of lengths are packed anew"),
    ]


def bench(browser: Browser, lab: JupyterLab, folder: Path, moves: int, many: int) -> list[Row]:
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    traffic = Traffic(page)
    open_notebook(page, lab, f"{folder.name}/{NOTEBOOK}")
    start = time.perf_counter()
    run_all(page)
    page.locator(".labkit-editor .handle.edge").first.wait_for(state="visible")
    ready = time.perf_counter() - start
    in_sight(page)
    hand = Hand(page)
    rows = [
        Row("run-all of notebook 01 to the first handle", ready, 10, "s", "n 1"),
        *latency_rows(page, hand, traffic, moves),
        *memory_rows(page, lab, hand, many),
        *cap_rows(page, hand, moves, "943 users"),
        *large_rows(page, hand, moves),
    ]
    page.close()
    return rows


def table(rows: list[Row]) -> str:
    cells = [("what", "measured", "bar", "", "")]
    for row in rows:
        bar, verdict = ("", "") if row.bar is None else (f"<= {row.bar:g} {row.unit}", "ok" if row.ok else "MISSED")
        cells.append((row.what, f"{row.value:.3g} {row.unit}".strip(), bar.strip(), verdict, row.detail))
    widths = [max(len(cell[i]) for cell in cells) for i in range(5)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip() for cell in cells]
    missed = [row.what for row in rows if not row.ok]
    barred = sum(row.bar is not None for row in rows)
    return "\n".join([*lines, f"missed: {'; '.join(missed)}" if missed else f"all {barred} bars met"])


def load_average() -> str:
    """What else the machine does: threads that want a core, over the last minute, and the cores."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def main(arguments: list[str] | None = None, write: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(prog="make bench-ui", description=__doc__)
    parser.add_argument("--moves", type=int, default=120, help=f"single moves of each kind, in {ROUNDS} rounds")
    parser.add_argument("--many", type=int, default=1000, help="moves between the two looks at memory")
    parser.add_argument("--json", type=Path, help="file for the rows")
    given = parser.parse_args(arguments)
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        write("bench-ui: Chromium is missing: run `make setup-tests`")
        return 2
    before = load_average()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        notebooks = Path(folder) / "notebooks"
        notebooks.mkdir()
        shutil.copy(ROOT / "notebooks" / NOTEBOOK, notebooks)
        lab = JupyterLab(Path(folder))
        try:
            browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
            rows = bench(browser, lab, notebooks, given.moves, given.many)
            browser.close()
        finally:
            lab.stop()
    write(table(rows))
    write(f"before: {before}; after, with what this did itself: {load_average()}")
    if given.json:
        found = {"before": before, "after": load_average(), "rows": [{**asdict(row), "ok": row.ok} for row in rows]}
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
