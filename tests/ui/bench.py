"""How quickly the screen answers, in a real JupyterLab in Chromium: ``make bench-ui`` prints the table and its bars.

Times are taken in the page, from the input event to the changed number. One move at a time, so that nothing is
coalesced, except in the flood. Where the machine is shared, look at the medians and at the number of moves as well.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.ui.jupyter import CHROMIUM_ARGS, ROOT, JupyterLab, open_notebook, run_all
from tests.ui.measuring import measuring

NOTEBOOK = "01_tune_buckets.ipynb"
WATCH = (Path(__file__).with_name("latency.js")).read_text()


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, its bar, and whether it is met."""

    what: str
    value: float | None
    bar: float
    unit: str
    detail: str

    @property
    def ok(self) -> bool:
        return self.value is not None and self.value <= self.bar


class Traffic:
    """Bytes and messages of all websockets of a page."""

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


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def grip(page: Page, number: int) -> tuple[float, float]:
    box = page.locator(".labkit-editor .handle.edge").nth(number).locator(".grip").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def single_moves(page: Page, kind: str, moves: int) -> list[float]:
    """Milliseconds from each move to the changed number; a move that changes nothing in 5 s is an error."""
    x, y = grip(page, 2)
    page.mouse.move(x, y)
    page.mouse.down()
    found = []
    for i in range(moves):
        page.evaluate("kind => labkitWatch.arm(kind)", kind)
        page.mouse.move(x + (1 if i % 2 else -1) * (6 + (i * 7) % 29), y)
        took = page.evaluate("() => labkitWatch.wait()")
        if took is None:
            raise RuntimeError(f"move {i} changed no {kind} number within 5 s")
        found.append(took)
    put_back(page)
    return found


def put_back(page: Page) -> None:
    """End the drag where it began, so that an edge does not wander to its neighbour."""
    page.keyboard.press("Escape")
    page.mouse.up()
    page.wait_for_timeout(400)


def flood(page: Page, moves: int) -> tuple[float, int]:
    """Milliseconds from the last of many quick moves to the last live number, and how many were shown in between."""
    page.evaluate("() => labkitWatch.reset()")
    x, y = grip(page, 2)
    page.mouse.move(x, y)
    page.mouse.down()
    for j in range(4):
        page.mouse.move(x + (30 if j % 2 == 0 else -30), y, steps=moves // 4)
    page.wait_for_timeout(2500)
    seen = page.evaluate("() => ({inputs: labkitWatch.inputs, live: labkitWatch.changes.live.map(c => c.at)})")
    put_back(page)
    return seen["live"][-1] - seen["inputs"][-1], len(seen["live"])


def heap_mb(page: Page) -> float:
    """JavaScript heap after collecting garbage."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return float(metrics["JSHeapUsedSize"]) / 1e6


def kernel_mb(lab: JupyterLab) -> float:
    children = psutil.Process(lab.pid).children(recursive=True)
    kernels = [child for child in children if "ipykernel_launcher" in " ".join(child.cmdline())]
    return sum(kernel.memory_info().rss for kernel in kernels) / 1e6


def latency_rows(page: Page, traffic: Traffic, moves: int) -> list[Row]:
    single_moves(page, "live", 10)  # warm-up
    instant = single_moves(page, "instant", moves)
    sent, received = traffic.sent, traffic.received
    live = single_moves(page, "live", moves)
    bytes_up, bytes_down = (traffic.sent - sent) / moves, (traffic.received - received) / moves
    lag, shown = flood(page, 200)
    with measuring(page):
        busy_instant = single_moves(page, "instant", moves)
        busy = single_moves(page, "live", moves)
    median = statistics.median
    n = f"n {moves}"
    return [
        Row("instant number after a move, p95", p95(instant), 16, "ms", f"median {median(instant):.1f} ms, {n}"),
        Row(
            "the same while Measure runs, p95",
            p95(busy_instant),
            16,
            "ms",
            f"median {median(busy_instant):.1f} ms, {n}",
        ),
        Row("live numbers of all strategies, median", median(live), 50, "ms", n),
        Row("live numbers of all strategies, p95", p95(live), 100, "ms", n),
        Row("live while Measure runs, median", median(busy), 100, "ms", f"{n}; bar: 2 x 50 ms"),
        Row("live while Measure runs, p95", p95(busy), 200, "ms", f"{n}; bar: 2 x 100 ms"),
        Row("200 quick moves: last value after the last move", lag, 200, "ms", f"{shown} live answers on the way"),
        Row("bytes up a move", bytes_up / 1e3, 5, "KB", n),
        Row("bytes down a move", bytes_down / 1e3, 5, "KB", n),
    ]


def memory_rows(page: Page, lab: JupyterLab, moves: int) -> list[Row]:
    count = "() => document.querySelectorAll('.labkit-panel .widget-box, .labkit-panel .jupyter-widgets').length"
    single_moves(page, "live", 50)
    heap, kernel, widgets = heap_mb(page), kernel_mb(lab), page.evaluate(count)
    for _ in range(max(1, moves // 100)):
        single_moves(page, "live", 100)
    more = page.evaluate(count) - widgets
    detail = f"{moves} moves"
    return [
        Row("JavaScript heap after many moves", heap_mb(page) - heap, 5, "MB", f"from {heap:.0f} MB, {detail}"),
        Row("kernel memory after many moves", kernel_mb(lab) - kernel, 5, "MB", f"from {kernel:.0f} MB, {detail}"),
        Row("widgets more after many moves", more, 0, "", f"from {widgets}, {detail}"),
    ]


def bench(browser: Browser, lab: JupyterLab, folder: Path, moves: int, many: int) -> list[Row]:
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    traffic = Traffic(page)
    open_notebook(page, lab, f"{folder.name}/{NOTEBOOK}")
    start = time.perf_counter()
    run_all(page)
    page.locator(".labkit-editor .handle.edge").first.wait_for(state="visible")
    ready = time.perf_counter() - start
    page.locator(".labkit-panel").evaluate("e => e.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(1500)
    page.evaluate(WATCH)
    page.evaluate("() => labkitWatch.start()")
    rows = [
        Row("run-all of notebook 01 to the first handle", ready, 10, "s", "n 1"),
        *latency_rows(page, traffic, moves),
        *memory_rows(page, lab, many),
    ]
    page.close()
    return rows


def table(rows: list[Row]) -> str:
    cells = [("what", "measured", "bar", "", "")]
    cells += [
        (
            row.what,
            "-" if row.value is None else f"{row.value:.3g} {row.unit}".strip(),
            f"<= {row.bar:g} {row.unit}".strip(),
            "ok" if row.ok else "MISSED",
            row.detail,
        )
        for row in rows
    ]
    widths = [max(len(cell[i]) for cell in cells) for i in range(5)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip() for cell in cells]
    missed = [row.what for row in rows if not row.ok]
    return "\n".join([*lines, f"missed: {', '.join(missed)}" if missed else f"all {len(rows)} bars met"])


def main(arguments: list[str] | None = None, write: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(prog="make bench-ui", description=__doc__)
    parser.add_argument("--moves", type=int, default=60, help="single moves of each kind")
    parser.add_argument("--many", type=int, default=1000, help="moves between the two looks at memory")
    parser.add_argument("--json", type=Path, help="file for the rows")
    given = parser.parse_args(arguments)
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        write("bench-ui: Chromium is missing: run `make setup-tests`")
        return 2
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
    if given.json:
        given.json.write_text(json.dumps([{**asdict(row), "ok": row.ok} for row in rows], indent=2) + "\n")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
