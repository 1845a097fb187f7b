"""EdgeSliders: the number of buckets, and one slider and one text field for each edge."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as W

from labkit.experiments.lineup import EdgesBy
from labkit.widgets.log_int import LABEL, LogInt
from labkit.widgets.section import Section

#: Rows are made once and hidden when not needed, so that the number of widgets never changes.
MAX_BUCKETS = 16


class EdgeSliders(W.VBox):
    """Bucket edges that stay strictly increasing: an edge stops at its neighbours.

    Args:
        buckets: number of buckets asked for.
        longest: longest length of the data.
        edges_by: how edges are found at first.
        changed: called (without arguments) after each change by the user.

    Attributes:
        edges: the edges shown, e1 < ... < eK.
        edges_by: how they are to be found; None once the user has moved one.
    """

    def __init__(self, buckets: int, longest: int, edges_by: EdgesBy | None, changed: Callable[[], None]) -> None:
        """Make all rows; ``show`` fills them."""
        self.edges: tuple[int, ...] = ()
        self.edges_by = edges_by
        self._changed = changed
        self._lock = threading.RLock()  # the worker shows edges while the user may move one
        self._showing = False
        self.buckets = W.IntSlider(
            min(buckets, MAX_BUCKETS),
            min=1,
            max=MAX_BUCKETS,
            description="buckets",
            style=LABEL,
            layout={"width": "auto"},
        )
        half = {"flex": "1 1 50%", "width": "auto"}
        self.optimal = W.Button(
            description="Optimal edges", icon="magic", tooltip="fewest slots for this many buckets", layout=half
        )
        self.quantile = W.Button(
            description="Quantile edges", icon="bars", tooltip="as many sequences in every bucket", layout=half
        )
        buttons = W.HBox([self.optimal, self.quantile], layout={"padding": "0 0 4px 0"})
        self._rows = [
            LogInt(f"edge {i + 1}", 1, 1, max(2, longest), note="", label_width="54px") for i in range(MAX_BUCKETS)
        ]
        self.numbers = Section("edges as numbers", self._rows, is_open=False)
        super().__init__([self.buckets, buttons, self.numbers])
        self.buckets.observe(self._count_changed, "value")
        self.optimal.on_click(lambda _: self._find(EdgesBy.OPTIMAL))
        self.quantile.on_click(lambda _: self._find(EdgesBy.QUANTILE))
        for row in self._rows:
            row.observe(self._moved, "value")

    def show(self, edges: Sequence[int], longest: int) -> None:
        """Put all edges at once, on sliders that end at ``longest``; no callback follows."""
        with self._lock:
            self._showing = True
            try:
                if self.edges_by is None:
                    self.buckets.value = min(len(edges), MAX_BUCKETS)
                for i, row in enumerate(self._rows):
                    row.layout.display = "" if i < len(edges) else "none"
                    if i < len(edges):
                        row.set_range(1, max(2, longest, edges[-1]))
                        row.value = edges[i]
            finally:
                self._showing = False
            self.edges = tuple(edges)

    def restore(self, buckets: int, edges: Sequence[int], edges_by: EdgesBy | None) -> None:
        """Bring back how edges were found, or those that were set by hand (None). No callback follows."""
        with self._lock:
            self._showing = True
            try:
                self.buckets.value = min(buckets, MAX_BUCKETS)
            finally:
                self._showing = False
            self.edges, self.edges_by = tuple(edges), edges_by

    def take(self, edges: Sequence[int]) -> None:
        """Take edges that were set by hand elsewhere; ``show`` brings them into sight. No callback follows."""
        with self._lock:
            self.edges, self.edges_by = tuple(edges), None

    def found(self, edges: Sequence[int]) -> None:
        """Take edges that were computed; ``show`` brings them into sight. No callback follows."""
        with self._lock:
            self.edges = tuple(edges)

    def annotate(self, notes: Sequence[str]) -> None:
        """Write a short note behind each edge."""
        for i, row in enumerate(self._rows):
            row.note.value = notes[i] if i < len(notes) else ""

    def _find(self, how: EdgesBy) -> None:
        with self._lock:
            if self.edges_by is None and len(self.edges) != self.buckets.value:
                # set by hand elsewhere a moment ago, and not yet shown here
                self._showing = True
                try:
                    self.buckets.value = min(len(self.edges), MAX_BUCKETS)
                finally:
                    self._showing = False
            self.edges_by = how
        self._changed()

    def _count_changed(self, change: Any) -> None:
        with self._lock:
            if self._showing:
                return
            self._showing = True  # the worker may have shown the number before it in the meantime
            try:
                self.buckets.value = change["new"]
            finally:
                self._showing = False
            self.edges_by = self.edges_by or EdgesBy.OPTIMAL  # edges set by hand cannot fit another number of buckets
        self._changed()

    def _moved(self, change: Any) -> None:
        with self._lock:
            if self._showing:
                return
            i = self._rows.index(change["owner"])
            shown = list(self.edges)
            if i >= len(shown):
                return  # of fewer edges than are still in sight: this one is about to go
            low = shown[i - 1] + 1 if i else 1
            high = shown[i + 1] - 1 if i + 1 < len(shown) else change["new"]
            shown[i] = max(low, min(change["new"], high))
            self.edges, self.edges_by = tuple(shown), None
            self._showing = True  # back from a neighbour, or from what the worker wrote in the meantime
            try:
                change["owner"].value = shown[i]
            finally:
                self._showing = False
        self._changed()
