"""LogInt: a whole number on a logarithmic slider, with a text field for the exact value."""

from __future__ import annotations

from typing import Any

import ipywidgets as W
import numpy as np
import traitlets as T

#: Style of every label of the panel, so that the sliders line up.
LABEL = {"description_width": "92px"}
_STEPS = 160


def grid(low: int, high: int) -> list[int]:
    """Whole numbers low .. high, about evenly spaced on a logarithmic axis, both ends among them."""
    points = np.geomspace(max(1, low), max(1, high), _STEPS)
    return sorted({low, high, *np.rint(points).astype(np.int64).tolist()})


class LogInt(W.HBox):
    """A labelled slider and text field that share one whole number.

    Attributes:
        value: the number, low <= value <= high.
    """

    value = T.Int()

    def __init__(
        self,
        label: str,
        value: int,
        low: int,
        high: int,
        *,
        note: str | None = None,
        label_width: str = LABEL["description_width"],
        **layout: Any,
    ) -> None:
        """Lay out label, slider, field and a note."""
        self._low, self._high = low, high
        self._grid = grid(low, high)
        self.slider = W.IntSlider(
            value=self._nearest(value), min=0, max=len(self._grid) - 1, description=label, readout=False,
            style={"description_width": label_width},
            layout={"flex": "1 1 auto", "width": "auto", "min_width": "110px"},
        )  # fmt: skip
        # named for screen readers; the slider's label is the one that is seen
        self.field = W.BoundedIntText(
            value=value, min=low, max=high, description=label, style={"description_width": "0px"},
            layout={"width": "86px", "flex": "0 0 auto"},
        )  # fmt: skip
        self.field.add_class("labkit-field")
        self.note = W.HTML(note or "", layout={"flex": "0 0 auto", "width": "92px" if note is not None else "0"})
        super().__init__([self.slider, self.field, self.note], layout={"align_items": "center", **layout})
        self.value = value
        self.slider.observe(self._from_slider, "value")
        self.field.observe(self._from_field, "value")
        self.observe(self._show, "value")

    def set_range(self, low: int, high: int) -> None:
        """Change the ends; the value is moved inside them."""
        if (low, high) == (self._low, self._high):
            return
        value = min(max(self.value, low), high)
        # first wide enough for the old value and the new, so that neither input moves anything by itself
        self.field.min, self.field.max = min(low, self._low), max(high, self._high)
        self._low, self._high, self._grid = low, high, grid(low, high)
        self.value = value
        self.field.value = value
        self.field.min, self.field.max = low, high
        with self.slider.hold_trait_notifications():
            self.slider.max = len(self._grid) - 1
            self.slider.value = self._nearest(value)

    def _nearest(self, value: int) -> int:
        i = int(np.searchsorted(self._grid, value))
        if i and (i == len(self._grid) or value - self._grid[i - 1] < self._grid[i] - value):
            return i - 1
        return i

    # No flags: an input that already says the same changes nothing, whichever thread set it.

    def _from_slider(self, change: Any) -> None:
        step = min(change["new"], len(self._grid) - 1)
        if step != self._nearest(self.value):
            self.value = self._grid[step]

    def _from_field(self, change: Any) -> None:
        self.value = change["new"]

    def _show(self, change: Any) -> None:
        """Bring both inputs to the value; a value between two steps of the slider leaves the slider at the nearest."""
        self.field.value = self.value
        self.slider.value = self._nearest(self.value)
