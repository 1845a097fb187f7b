"""The regimes of the segmented kernels over the histogram of the lengths: who works on which rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from labkit.experiments.regime_shares import RegimeShare
from labkit.gpu.regimes import Regime
from labkit.lengths.histogram import LengthHistogram
from labkit.units import format_share
from labkit.views import palette
from labkit.views.histogram_figure import axis, histogram_figure

_WORKERS = {
    Regime.SHORT: "a group of lanes",
    Regime.MEDIUM: "a warp",
    Regime.LONG: "a block",
    Regime.GIANT: "several blocks",
}


def regime_figure(histogram: LengthHistogram, shares: Sequence[RegimeShare], *, height: int = 300) -> go.Figure:
    """Draw the thresholds, and above each regime who works there and what share of sequences and events it takes.

    Args:
        histogram: of the lengths.
        shares: of the regimes, in their order.
        height: in pixels.
    """
    figure = histogram_figure(histogram, (), height=height)
    low, high = axis(histogram)["range"]
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for place, share in enumerate(shares):
        left = max(low, np.log2(share.above + 0.5) if share.above >= 1 else low)
        right = min(high, high if share.most is None else np.log2(share.most + 0.5))
        if right <= left or not share.sequences:
            continue
        shade = palette.BAND if place % 2 else "rgba(0,0,0,0)"
        shapes.append(_shape("rect", left, right, {"fillcolor": shade, "line": {"width": 0}}))
        if share.most is not None and right < high:
            shapes.append(_shape("line", right, right, {"line": {"color": palette.GREEN, "width": 2}}))
        notes.append(_note((left + right) / 2, share))
    figure.update_layout(shapes=shapes, annotations=notes, margin={"l": 50, "r": 16, "t": 78, "b": 46})
    return figure


def _shape(kind: str, x0: float, x1: float, style: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "x0": x0, "x1": x1, "y0": 0, "y1": 1, "yref": "paper", "layer": "below", **style}


def _note(x: float, share: RegimeShare) -> dict[str, Any]:
    upto = "longer" if share.most is None else f"≤ {share.most}"
    events = "–" if share.event_share is None else format_share(share.event_share)
    text = (
        f"<b>{share.regime}</b> {upto}<br>{_WORKERS[share.regime]}"
        f"<br>{format_share(share.sequence_share)} of rows<br>{events} of events"
    )
    return {
        "x": float(x),
        "y": 1.01,
        "yref": "paper",
        "yanchor": "bottom",
        "xanchor": "center",
        "text": text,
        "showarrow": False,
        "font": {"size": 10.5, "color": palette.TEXT_GREEN},
        "hovertext": f"{share.sequences} sequences, {share.events} events",
    }
