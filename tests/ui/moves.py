"""Moves of a handle with the mouse, each timed in the page by latency.js."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page

_WATCH = Path(__file__).with_name("latency.js").read_text()


@dataclass(frozen=True)
class Move:
    """Milliseconds of one move.

    Attributes:
        wait: from ``event.timeStamp``, when the browser had the input, to the first handler.
        handler: inside the handlers.
        number: from ``event.timeStamp`` until the changed number is in the page.
        painted: from ``event.timeStamp`` until the frame with that number has been produced.
    """

    wait: float
    handler: float
    number: float
    painted: float


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


class Hand:
    """A mouse on a handle of the editor.

    Args:
        page: with one panel in sight.
        event: that the editor listens to.
    """

    def __init__(self, page: Page, event: str = "pointerrawupdate") -> None:
        """Begin to watch the page."""
        self._page, self._moved = page, 0
        page.evaluate(_WATCH)
        page.evaluate("event => labkitWatch.start(event)", event)

    def handle(self, kind: str, number: int = 2) -> Locator:
        """The handle of an edge (counted from 0) or of the cap."""
        return self._page.locator(f".labkit-editor .handle.{kind}").nth(number if kind == "edge" else 0)

    def grip(self, kind: str) -> tuple[float, float]:
        """Its middle, in the window's pixels."""
        box = self.handle(kind).locator(".grip").bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def moves(self, tier: str, count: int, *, kind: str = "edge") -> list[Move]:
        """Moves there and back, each after the number of the one before has changed.

        Args:
            tier: "instant" or "live": which number is waited for.
            count: of moves.
            kind: of handle, "edge" or "cap".

        Raises:
            RuntimeError: a move changed no number within 10 s.
        """
        x, y = self.grip(kind)
        self._page.mouse.move(x, y)
        self._page.mouse.down()
        found = []
        for i in range(count):
            self._page.evaluate("tier => labkitWatch.arm(tier)", tier)
            self._moved += 1
            away = 6 + 29 * (self._moved * 0.618034 % 1)  # no place twice, so that nothing is answered from memory
            self._page.mouse.move(x + (away if i % 2 else -away), y)
            took = self._page.evaluate("() => labkitWatch.wait()")
            if took is None:
                raise RuntimeError(f"move {i} of the {kind} changed no {tier} number within 10 s")
            found.append(Move(**took))
        self._put_back()
        return found

    def flood(self, count: int) -> tuple[float, int]:
        """Many quick moves, none waited for.

        Returns:
            Milliseconds from the last move to the last table, all of the next second counted, so that nothing is queued
            behind it; tables that came from the first move on.

        Raises:
            RuntimeError: the last table does not say what the editor says.
        """
        x, y = self.grip("edge")
        self._page.mouse.move(x, y)
        self._page.mouse.down()
        self._page.evaluate("() => labkitWatch.reset()")
        for j in range(4):
            self._page.mouse.move(x + (30 if j % 2 == 0 else -30), y, steps=count // 4)
        self._page.wait_for_function("() => labkitWatch.tables.at(-1)?.agrees", timeout=20_000)
        self._page.wait_for_timeout(1000)  # what is queued would come now
        lag, shown, agrees = self._page.evaluate(
            "() => [labkitWatch.tables.at(-1).at - labkitWatch.moves.at(-1).stamp, labkitWatch.tables.length,"
            " labkitWatch.tables.at(-1).agrees]"
        )
        if not agrees:
            raise RuntimeError("a second after the last move the table is not of the edges that are shown")
        self._put_back()
        return float(lag), int(shown)

    def _put_back(self) -> None:
        """End the drag where it began, so that an edge does not wander to its neighbour."""
        self._page.keyboard.press("Escape")
        self._page.mouse.up()
        self._page.wait_for_function("() => labkitWatch.agrees()", timeout=20_000)


def spread(rounds: list[list[float]]) -> str:
    """Median, the middle half, the p95 of each round: how far the machine's other work can be seen."""
    pooled = [value for values in rounds for value in values]
    low, middle, high = statistics.quantiles(pooled, n=4)
    each = ", ".join(f"{p95(values):.0f}" for values in rounds)
    return f"n {len(pooled)}, median {middle:.1f}, middle half {low:.1f}-{high:.1f}, p95 of rounds {each}"
