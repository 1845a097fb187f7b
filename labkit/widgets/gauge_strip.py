"""GaugeStrip: what the machine does now, a row of small gauges; one that is empty says why."""

from __future__ import annotations

import threading
from pathlib import Path

import anywidget
import traitlets as T

from labkit.bench.gauge_feed import GaugeFeed
from labkit.bench.machine_gauges import MachineGauges, MachineReading
from labkit.provenance import Figure
from labkit.units import format_share
from labkit.views.gauges import gauges_of
from labkit.views.palette import CSS
from labkit.widgets.explained import explained
from labkit.widgets.modules import joined_modules

_FOLDER = Path(__file__).parent
#: The page says what it has drawn every 10th time: after so many without a word nobody looks any more.
_UNSEEN = 25


class GaugeStrip(anywidget.AnyWidget):
    """Streams while it is wanted and in sight, from one sampler thread, in one trait; the page keeps what it draws.

    Attributes:
        wanted: the switch of the user.
        visible: it is in sight; set by the page.
        running: it streams.
        sample: the newest reading: ``number``, ``gauges`` and what streaming costs.
        drawn: number of a sample that the page has drawn; set by the page, now and then.
        problem: why it ended by itself.
    """

    _esm = joined_modules("notebook_keys.mjs", "gauge_strip.js")
    _css = CSS + (_FOLDER / "gauge_strip.css").read_text(encoding="utf-8")

    wanted = T.Bool(True).tag(sync=True)
    visible = T.Bool(False).tag(sync=True)
    running = T.Bool(False).tag(sync=True)
    sample = T.Dict().tag(sync=True)
    drawn = T.Int(0).tag(sync=True)
    problem = T.Unicode("").tag(sync=True)

    def __init__(self) -> None:
        """Nothing is sampled before the strip is seen."""
        super().__init__()
        self._lock = threading.RLock()
        self._feed: GaugeFeed | None = None
        self._number = 0
        self._closed = False
        self.observe(lambda _: self._follow(), ["wanted", "visible"])

    def close(self) -> None:
        """Stop and remove. Safe to call twice."""
        with self._lock:
            self._closed = True
            feed = self._feed
        if feed is not None:
            feed.stop(wait=True)
        super().close()

    def _follow(self) -> None:
        """Stream or not, as the user and the page say. A feed that was stopped ends before another begins."""
        with self._lock:
            wanted = self.wanted and self.visible and not self._closed
            if wanted and self._feed is None:
                self.drawn = self._number
                self.problem = ""
                self._feed = GaugeFeed(self._give, self._ended)
            elif not wanted and self._feed is not None:
                self._feed.stop()  # what it ends with calls here again
            self.running = wanted

    def _give(self, gauges: MachineGauges, reading: MachineReading, cost: Figure) -> bool:
        """On the feed's thread."""
        if self._number - self.drawn > _UNSEEN:
            self.visible = False  # a page that comes back sets it again
            return False
        self._number += 1
        self.sample = {
            "number": self._number,
            "gauges": gauges_of(gauges, reading),
            "cost": "" if cost.value is None else f"costs {format_share(cost.value)} of a core",
        }
        return True

    def _ended(self, error: Exception | None) -> None:
        """On the feed's thread, whose gauges are closed."""
        with self._lock:
            self._feed = None
            if error is not None and not self._closed:
                self.problem = explained(error)
                self.wanted = False
            self._follow()
