"""EdgeEditor: bucket edges as handles on the histogram of the lengths, with numbers that follow the hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import numpy as np
import traitlets as T

from labkit.batching.edges import Edges
from labkit.batching.policy import Oversize
from labkit.experiments.lineup import Lineup
from labkit.lengths.histogram import LengthHistogram
from labkit.views.palette import CSS
from labkit.widgets.modules import joined_modules

_FOLDER = Path(__file__).parent


class Setting(NamedTuple):
    """What the page said: the ``edges`` and the cap ``max_length`` of change number ``seq``, and what had moved.

    What has not moved says nothing: another cap may have been typed in the meantime, optimal edges may follow the cap.
    """

    seq: int
    edges: tuple[int, ...]
    max_length: int | None
    edges_moved: bool = False
    cap_moved: bool = False


class EdgeEditor(anywidget.AnyWidget):
    """Bucket edges, and a cap, on the histogram of the lengths.

    The browser computes the padding at every move (*instant*, by the same rules as ``what_if``) and sends the edges
    with a number; whoever listens answers that number, and only then the next edges are sent, the newest.

    Args:
        histogram: of the data set.
        edges: to start with.
        changed: called (without arguments) after each change by the user.
        most: most edges.

    Attributes:
        edges: the edges shown, e1 < ... < eK.
        max_length: the cap shown as a handle, or None.
        seq: number of the newest change by the user.
        answered: number of the newest change that has been answered; set it by ``answer``.
        rules: what else decides on slots: token budget, multiples, overflow.
        optimum: ``edges`` of the optimum for this number, ``curve``, the fewest slots for 1, 2, ... edges, for how many
            it was ``asked`` at least, and the ``cap`` under which that holds; empty where it is not known.
        snap: edges are kept at multiples of it.
        log_axis: the axis of lengths is logarithmic.
    """

    _esm = joined_modules(
        "padding.mjs", "edge_moves.mjs", "length_axis.mjs", "notebook_keys.mjs", "edge_words.mjs", "edge_drawing.mjs",
        "edge_picture.mjs", "edge_drag.mjs", "edge_page.mjs", "edge_editor.js",
    )  # fmt: skip
    # as text: a path would be watched, and would keep every instance alive after it was closed
    _css = CSS + (_FOLDER / "edge_editor.css").read_text(encoding="utf-8")

    lengths = T.Bytes().tag(sync=True)  # (m,) float64: lengths and counts are whole numbers below 2**53
    counts = T.Bytes().tag(sync=True)
    edges = T.List(T.Int()).tag(sync=True)
    max_length = T.Int(None, allow_none=True).tag(sync=True)
    seq = T.Int(0).tag(sync=True)
    answered = T.Int(0).tag(sync=True)
    rules = T.Dict().tag(sync=True)
    optimum = T.Dict().tag(sync=True)
    snap = T.Int(1, min=1).tag(sync=True)
    log_axis = T.Bool(True).tag(sync=True)
    most = T.Int(16).tag(sync=True)

    def __init__(
        self,
        histogram: LengthHistogram,
        edges: Sequence[int],
        changed: Callable[[], None] | None = None,
        *,
        most: int = 16,
    ) -> None:
        """Send the histogram once; what follows are small messages."""
        # held while a message of the page is taken in and while an answer is given, not while ``changed`` is called;
        # who observes a trait is called under it, and must not wait for the panel
        self._taking = threading.RLock()
        self._is_taking = self._was_moved = self._edges_moved = self._cap_moved = False
        super().__init__(edges=list(edges), most=most, rules=rules_of(Lineup()), **_sent(histogram))
        self._shown = histogram
        self._changed = changed
        self.observe(self._moved, "seq")

    @property
    def setting(self) -> Setting:
        """What the page said last: edges and cap with the number that they came with."""
        with self._taking:
            return Setting(self.seq, tuple(self.edges), self.max_length, self._edges_moved, self._cap_moved)

    def answer(
        self,
        seq: int,
        lineup: Lineup,
        *,
        histogram: LengthHistogram | None = None,
        edges: Sequence[int] | None = None,
        optimum: Edges | None = None,
    ) -> None:
        """Say that change number ``seq`` is answered, in one message with all that goes with it.

        Edges and cap stay as they are where the page has sent newer ones in the meantime.

        Args:
            seq: the ``seq`` of the ``setting`` that was scored.
            lineup: the settings that were scored.
            histogram: that they were scored on; other data is sent together with its edges.
            edges: where Python chose them; None leaves those of the user.
            optimum: the optimal edges with their curve; None where they are not known.
        """
        with self._taking, self.hold_sync():
            is_new = histogram is not None and histogram is not self._shown
            if histogram is not None and is_new:
                self._shown = histogram
                for name, value in _sent(histogram).items():
                    setattr(self, name, value)
            self.rules = rules_of(lineup)
            self.show_optimum(optimum, lineup.max_length)
            if is_new or seq >= self.seq:
                self.max_length = lineup.max_length
                if edges is not None:
                    self.edges = list(edges)
            self.answered = max(self.answered, seq)

    def show_optimum(self, optimum: Edges | None, max_length: int | None) -> None:
        """Show where the optimal edges lie under this cap, or nothing."""
        with self._taking:
            if optimum is None or optimum.curve is None:
                self.optimum = {}
            else:
                edges, curve = list(optimum.edges), list(optimum.curve)
                self.optimum = {"edges": edges, "curve": curve, "asked": optimum.asked, "cap": max_length}

    def set_state(self, sync_data: Any) -> None:
        """Take in a message of the page; listeners hear of it when all of it is there."""
        with self._taking:
            self._is_taking = True
            self._edges_moved, self._cap_moved = "edges" in sync_data, "max_length" in sync_data
            try:
                super().set_state(sync_data)
            finally:
                self._is_taking = False
                moved, self._was_moved = self._was_moved, False
        if moved:
            self._moved(None)

    def _moved(self, _: Any) -> None:
        if self._is_taking:
            self._was_moved = True
        elif self._changed is not None:
            self._changed()


def rules_of(lineup: Lineup) -> dict[str, Any]:
    """What ``padding.mjs`` needs to know of the settings, apart from the cap, which is a handle."""
    return {
        "lengthMultiple": lineup.length_multiple,
        "overflow": "error" if str(lineup.overflow) == "split" else str(lineup.overflow),
        "budget": lineup.token_budget,
        "rows": lineup.rows,
        "rowMultiple": lineup.row_multiple,
        "singleRow": lineup.oversize == Oversize.SINGLE_ROW,
    }


def _sent(histogram: LengthHistogram) -> dict[str, bytes]:
    return {
        "lengths": histogram.values.astype(np.float64).tobytes(),
        "counts": histogram.counts.astype(np.float64).tobytes(),
    }
