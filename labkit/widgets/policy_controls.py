"""PolicyControls: the settings that all strategies share, apart from the edges."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ipywidgets as W

from labkit.batching.policy import Overflow, Oversize
from labkit.experiments.lineup import Lineup
from labkit.lengths.histogram import LengthHistogram
from labkit.widgets.log_int import LogInt

#: The largest number that may be typed: slots are counted in 64 bits, so that rows x width stays far below 2**63.
_MOST = 2**31 - 1
_MULTIPLES = [1, 2, 4, 8, 16, 32, 64, 128]


class PolicyControls(W.VBox):
    """Token budget, rows, cap, capacity of packs, multiples, and what happens to what does not fit.

    Args:
        lineup: what to start with.
        longest: longest length of the data.
        changed: called (without arguments) after each change by the user.
    """

    def __init__(self, lineup: Lineup, longest: int, changed: Callable[[], None]) -> None:
        """Lay out the controls."""
        self.token_budget = LogInt(
            "token budget", lineup.token_budget, 1, max(1 << 20, lineup.token_budget), most=_MOST
        )
        self.rows = LogInt("rows", lineup.rows, 1, max(65_536, lineup.rows), most=_MOST)
        self.has_cap = _box(lineup.max_length is not None, "cap")
        self.cap = LogInt(
            "max length", lineup.max_length or longest, 1, max(2, longest, lineup.max_length or 1), flex="1 1 auto"
        )
        self.has_capacity = _box(lineup.capacity is not None, "set")
        self.capacity = LogInt(
            "pack capacity", lineup.capacity or longest, 1, _widest(longest, lineup.capacity), flex="1 1 auto"
        )
        self.length_multiple = _menu("width multiple", _MULTIPLES, lineup.length_multiple)
        self.row_multiple = _menu("row multiple", _MULTIPLES, lineup.row_multiple)
        self.overflow = _menu("overflow", [str(o) for o in Overflow], str(lineup.overflow))
        self.oversize = _menu("oversize", [str(o) for o in Oversize], str(lineup.oversize))
        super().__init__(
            [
                self.token_budget,
                self.rows,
                W.HBox([self.cap, self.has_cap], layout={"align_items": "center"}),
                W.HBox([self.capacity, self.has_capacity], layout={"align_items": "center"}),
                W.HBox([self.length_multiple, self.row_multiple]),
                W.HBox([self.overflow, self.oversize]),
            ]
        )
        self._start, self._changed = lineup, changed
        self._show_switches()
        self._lock = threading.RLock()  # the worker shows a cap while the user may change something
        self._taking = False
        self._by_hand: tuple[int | None] | None = None  # a cap that was set elsewhere and is not shown yet
        for name in _NAMES:
            getattr(self, name).observe(self._on_changed, "value")
        for switch in (self.has_cap, self.has_capacity):
            switch.observe(lambda _: self._show_switches(), "value")

    @property
    def max_length(self) -> int | None:
        """The cap, or None."""
        if self._by_hand is not None:
            return self._by_hand[0]
        return self.cap.value if self.has_cap.value else None

    @property
    def pack_capacity(self) -> int | None:
        """Slots of a pack, or None: the longest length after the cap."""
        return self.capacity.value if self.has_capacity.value else None

    @property
    def lineup(self) -> Lineup:
        """The settings as they are now; edges and buckets are those of the start."""
        return replace(
            self._start,
            rows=self.rows.value,
            token_budget=self.token_budget.value,
            max_length=self.max_length,
            overflow=Overflow(self.overflow.value),
            oversize=Oversize(self.oversize.value),
            row_multiple=self.row_multiple.value,
            length_multiple=self.length_multiple.value,
            capacity=self.pack_capacity,
        )

    def take_cap(self, max_length: int | None) -> None:
        """Take a cap that was set by hand elsewhere; ``show_cap`` brings it into sight. No callback follows."""
        with self._lock:
            self._by_hand = (max_length,)

    def show_cap(self) -> None:
        """Bring the cap into sight; no callback follows."""
        with self._lock:
            if self._by_hand is None:
                return
            (max_length,) = self._by_hand
            self._taking = True
            try:
                self.has_cap.value = max_length is not None
                if max_length is not None:
                    self.cap.value = max_length
            finally:
                self._taking, self._by_hand = False, None

    def take(self, lineup: Lineup) -> None:
        """Take all settings of a lineup; no callback follows."""
        with self._lock:
            self.take_cap(lineup.max_length)
            self.show_cap()
            self._taking = True
            try:
                self.has_capacity.value = lineup.capacity is not None
                if lineup.capacity is not None:
                    self.capacity.value = lineup.capacity
                for name in ("token_budget", "rows", "length_multiple", "row_multiple"):
                    getattr(self, name).value = getattr(lineup, name)
                self.overflow.value, self.oversize.value = str(lineup.overflow), str(lineup.oversize)
            finally:
                self._taking = False

    def fit(self, histogram: LengthHistogram) -> None:
        """Let the cap end at the longest length of other data, and the capacity at some packs of it."""
        self.show_cap()
        self.cap.set_range(1, max(2, histogram.max))
        if not self.has_cap.value:
            self.cap.value = max(1, histogram.max)
        self.capacity.set_range(1, _widest(histogram.max, self.pack_capacity))
        if not self.has_capacity.value:
            self.capacity.value = max(1, histogram.max)

    def _on_changed(self, change: Any) -> None:
        with self._lock:
            if self._taking:
                return
            if change["owner"] in (self.has_cap, self.cap):
                self._by_hand = None  # the newer one wins
        self._changed()  # not under the lock: whoever is called has one of their own

    def _show_switches(self) -> None:
        for switch, number in ((self.has_cap, self.cap), (self.has_capacity, self.capacity)):
            number.slider.disabled = number.field.disabled = not switch.value


_NAMES = (
    "token_budget", "rows", "has_cap", "cap", "has_capacity", "capacity",
    "length_multiple", "row_multiple", "overflow", "oversize",
)  # fmt: skip


def _widest(longest: int, capacity: int | None) -> int:
    """The end of the capacity slider: some of the longest sequences fit one pack, or what is asked for."""
    return max(2, 4 * longest, capacity or 1)


def _box(value: bool, label: str) -> W.Checkbox:
    return W.Checkbox(value, description=label, indent=False, layout={"width": "56px"})


def _menu(label: str, options: list[Any], value: Any) -> W.Dropdown:
    shown = options if value in options else sorted([*options, value])
    return W.Dropdown(
        options=[(str(o), o) for o in shown], value=value, description=label,
        style={"description_width": "initial"}, layout={"width": "50%"},
    )  # fmt: skip
