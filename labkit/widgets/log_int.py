"""LogInt: a whole number on a logarithmic slider, with a text field for the exact value."""

from __future__ import annotations

import html
import re
from decimal import Decimal
from typing import Any

import ipywidgets as W
import numpy as np
import traitlets as T

#: Style of every label of the panel, so that the sliders line up.
LABEL = {"description_width": "92px"}
_STEPS = 160
_PROBLEM = "color:var(--jp-error-color1, #b32d00);font-size:12px;line-height:1.3;text-align:right"


def grid(low: int, high: int) -> list[int]:
    """Whole numbers low .. high, about evenly spaced on a logarithmic axis, both ends among them."""
    points = np.geomspace(max(1, low), max(1, high), _STEPS)
    return sorted({low, high, *np.rint(points).astype(np.int64).tolist()})


def parsed(text: str, low: int, most: int) -> int:
    """A whole number as typed: ``16384``, ``16,384``, ``16 384``, ``1e6``.

    Raises:
        ValueError: it is none, or not within low .. most; the message has both.
    """
    plain = re.sub(r"(?<=\d)[ ,_](?=\d{3}(?!\d))", "", text.strip())
    if re.fullmatch(r"[+-]?\d+\.\d{3}", plain):  # a thousand to some, one to others
        raise ValueError(f"{text.strip()[:24]} may be read in two ways: write it without the point.")
    if not re.fullmatch(r"[+-]?\d{1,18}(\.\d{1,18})?([eE]\+?\d{1,2})?", plain):
        raise ValueError(f"{text.strip()[:24]!r} is not a whole number.")
    number = Decimal(plain)
    if number != number.to_integral_value():
        raise ValueError(f"{text.strip()[:24]} is not a whole number.")
    if not low <= number <= most:
        raise ValueError(f"{text.strip()[:24]} is not within {low:,} to {most:,}.")
    return int(number)


class LogInt(W.HBox):
    """A labelled slider and text field that share one whole number.

    What is typed and cannot be taken stays in the field and is said below; the number stays what it was.

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
        most: int | None = None,
        note: str | None = None,
        label_width: str = LABEL["description_width"],
        **layout: Any,
    ) -> None:
        """Lay out label, slider, field and a note; up to ``most`` may be typed, and the slider then ends there."""
        self._low, self._high, self._most = low, high, most
        self._grid = grid(low, high)
        self.slider = W.IntSlider(
            value=self._nearest(value), min=0, max=len(self._grid) - 1, description=label, readout=False,
            style={"description_width": label_width},
            layout={"flex": "1 1 auto", "width": "auto", "min_width": "110px"},
        )  # fmt: skip
        # named for screen readers; the slider's label is the one that is seen
        self.field = W.Text(
            str(value), description=label, continuous_update=False, style={"description_width": "0px"},
            layout={"width": "86px", "flex": "0 0 auto"},
        )  # fmt: skip
        self.field.add_class("labkit-field")
        self.note = W.HTML(note or "", layout={"flex": "0 0 auto", "width": "92px" if note is not None else "0"})
        self.problem = W.HTML(layout={"flex": "1 1 100%", "display": "none"})
        row = {"align_items": "center", "flex_flow": "row wrap", **layout}
        super().__init__([self.slider, self.field, self.note, self.problem], layout=row)
        self.value = value
        self.slider.observe(self._from_slider, "value")
        self.field.observe(self._from_field, "value")
        self.observe(self._show, "value")

    def set_range(self, low: int, high: int) -> None:
        """Change the ends; the value is moved inside them."""
        if (low, high) == (self._low, self._high):
            return
        value = min(max(self.value, low), high)
        self._low, self._high, self._grid = low, high, grid(low, high)
        self.value = value
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
        if change["new"] == str(self.value):
            self._say("")
            return
        try:
            number = parsed(change["new"], self._low, max(self._high, self._most or 0))
        except ValueError as error:
            self._say(f"{error} {self.value:,} stays.")  # and so does the text, to be mended
            return
        self._say("")
        if number > self._high:
            self.set_range(self._low, number)
        self.value = number
        self.field.value = str(self.value)  # "1e6" was typed, or who listens has set another
        if self.value != number:
            self._say(f"{number:,} cannot be taken here: {self.value:,} is the nearest.")

    def _show(self, change: Any) -> None:
        """Bring both inputs to the value; a value between two steps of the slider leaves the slider at the nearest."""
        self.field.value = str(self.value)
        self.slider.value = self._nearest(self.value)

    def _say(self, text: str) -> None:
        (self.field.add_class if text else self.field.remove_class)("labkit-wrong")
        self.problem.layout.display = "" if text else "none"
        self.problem.value = f'<div role="alert" style="{_PROBLEM}">{html.escape(text)}</div>' if text else ""
