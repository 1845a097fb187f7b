"""The histogram of lengths on a logarithmic axis, with the bucket edges drawn on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from labkit.lengths.histogram import LengthHistogram
from labkit.units import format_count, format_share
from labkit.views import palette

#: Bins a doubling of the length, where lengths are dense enough for that.
_BINS_PER_DOUBLING = 6


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars on an axis of log2(length); the area of all bars is the share of sequences that are not empty.

    Attributes:
        centers, widths: (n,) of the bars, in doublings.
        sequences: (n,) share of all sequences a doubling.
        events: (n,) share of all events a doubling.
        hover: (n,) text of each bar.
    """

    centers: NDArray[np.float32]
    widths: NDArray[np.float32]
    sequences: NDArray[np.float32]
    events: NDArray[np.float32]
    hover: list[str]


def bars(histogram: LengthHistogram) -> Bars:
    """Count the sequences and events of each bin. Cost: O(m)."""
    starts = _bin_starts(*_ends(histogram, ()))
    positions = np.searchsorted(histogram.values, starts)
    users = np.diff(histogram.count_sums[positions])
    events = np.diff(histogram.event_sums[positions])
    left, right = np.log2(starts[:-1] - 0.5), np.log2(starts[1:] - 0.5)
    width = right - left
    hover = [
        f"length {low}{'' if high == low else f' to {high}'}"
        f"<br>{format_count(u)} sequences, {format_share(u / histogram.sequences)}"
        f"<br>{format_count(e)} events, {format_share(e / max(1, histogram.events))}"
        for low, high, u, e in zip(starts[:-1], starts[1:] - 1, users.tolist(), events.tolist(), strict=True)
    ]
    return Bars(
        centers=((left + right) / 2).astype(np.float32),
        widths=width.astype(np.float32),
        sequences=(users / histogram.sequences / width).astype(np.float32),
        events=(events / max(1, histogram.events) / width).astype(np.float32),
        hover=hover,
    )


def histogram_figure(
    histogram: LengthHistogram, edges: Sequence[int], max_length: int | None = None, *, height: int = 260
) -> go.Figure:
    """Draw where the sequences are (bars), where the events are (line), and where the edges cut.

    Args:
        histogram: of the data set, not capped.
        edges: bucket edges; the figure shows them upper-inclusive, right of their length.
        max_length: the cap, drawn where it cuts.
        height: in pixels.
    """
    b = bars(histogram)
    figure = go.Figure(
        [
            go.Bar(
                x=b.centers,
                y=b.sequences,
                width=b.widths,
                name="sequences",
                marker={"color": palette.BLUE, "line": {"width": 0}},
                hovertext=b.hover,
                hoverinfo="text",
            ),
            go.Scatter(
                x=b.centers,
                y=b.events,
                name="events",
                mode="lines",
                line={"color": palette.ORANGE, "width": 2.5, "dash": "dot", "shape": "spline", "smoothing": 0.4},
                hoverinfo="skip",
            ),
        ]
    )
    figure.update_layout(**palette.base_layout(height), bargap=0, **edge_marks(edges, max_length))
    figure.update_xaxes(
        title={"text": "sequence length (events)", "standoff": 6},
        showgrid=False,
        zeroline=False,
        **axis(histogram, edges),
    )
    figure.update_yaxes(
        title="share per doubling", tickformat=".0%", gridcolor=palette.LINE, zeroline=False, rangemode="tozero"
    )
    return figure


def axis(histogram: LengthHistogram, edges: Sequence[int] = ()) -> dict[str, Any]:
    """Range and ticks of the length axis: from the shortest length or edge to the longest, powers of two between.

    Args:
        histogram: of the data set; lengths of 0 have no place on a logarithmic axis.
        edges: bucket edges that are to be seen.
    """
    shortest, longest = _ends(histogram, edges)
    low, high = float(np.log2(shortest - 0.5)) - 0.1, float(np.log2(longest + 0.5)) + 0.1
    step = max(1, round((high - low) / 12))
    powers = [p for p in range(0, int(high) + 1, step) if low < p < np.log2(longest) - 0.4]
    return {
        "range": [low, high],
        "tickvals": [float(p) for p in powers] + [float(np.log2(longest))],
        "ticktext": [str(2**p) for p in powers] + [str(longest)],
    }


def _ends(histogram: LengthHistogram, edges: Sequence[int]) -> tuple[int, int]:
    shortest = int(histogram.values[histogram.values > 0][0]) if histogram.max > 0 else 1
    return min([shortest, *edges]), max([1, histogram.max, *edges])


def edge_marks(edges: Sequence[int], max_length: int | None = None) -> dict[str, Any]:
    """Shapes and labels of the edges: a line and its number each, every other bucket shaded; the cap in red, dashed."""
    places = [float(np.log2(e + 0.5)) for e in edges]
    shapes: list[dict[str, Any]] = []
    for i, (left, right) in enumerate(zip([-1.5, *places], places, strict=False)):
        if i % 2:
            shapes.append(_shape("rect", left, right, fillcolor=palette.BAND, line={"width": 0}))
    shapes += [_shape("line", x, x, line={"color": palette.GREEN, "width": 2}) for x in places]
    notes = [_note(x, str(e), palette.TEXT_GREEN, i % 2) for i, (x, e) in enumerate(zip(places, edges, strict=True))]
    if max_length is not None:
        x = float(np.log2(max_length + 0.5))
        shapes.append(_shape("line", x, x, line={"color": palette.VERMILION, "width": 2, "dash": "dash"}))
        notes.append(
            {
                **_note(x, f"cap {max_length}", palette.TEXT_VERMILION, 0),
                "y": 0.5,
                "textangle": -90,
                "xshift": -9,
                "yanchor": "middle",
            }
        )
    return {"shapes": shapes, "annotations": notes}


def _shape(kind: str, x0: float, x1: float, **style: Any) -> dict[str, Any]:
    return {"type": kind, "x0": x0, "x1": x1, "y0": 0, "y1": 1, "yref": "paper", "layer": "below", **style}


def _note(x: float, text: str, color: str, row: int) -> dict[str, Any]:
    return {
        "x": x,
        "y": 1.0 + 0.07 * row,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"<b>{text}</b>",
        "showarrow": False,
        "xanchor": "center",
        "font": {"color": color, "size": 11},
    }


def _bin_starts(shortest: int, longest: int) -> NDArray[np.int64]:
    """Integer bin starts shortest .. longest + 1, about evenly spaced on the logarithmic axis."""
    doublings = float(np.log2((longest + 1) / shortest))
    grid = np.geomspace(shortest, longest + 1, max(2, int(doublings * _BINS_PER_DOUBLING) + 1))
    return np.unique(np.rint(grid).astype(np.int64))
