"""What each further bucket edge saves: least padding against the number of edges, with the elbow."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from labkit.experiments.optimum import elbow
from labkit.views import palette

#: Letters in a line of what is said instead of a curve, and lines, in the narrowest figure.
_LINE, _LINES = 36, 7


def curve_data(
    curve: Sequence[float], events: float, buckets: int, slots: float | None, refused: str = ""
) -> dict[str, Any]:
    """Points of the picture: the optimum for 1, 2, ... edges, the elbow, and where the edges shown are.

    Args:
        curve: fewest slots with at most 1, 2, ... edges; may be empty.
        events: that are kept.
        buckets: edges shown.
        slots: of the edges shown; None where they make no valid policy.
        refused: why they make none; said where there is no curve.
    """
    padding = [max(0.0, 1 - events / cost) for cost in curve]
    bend = elbow(curve) if curve else None
    lines = textwrap.wrap(refused, _LINE, max_lines=_LINES, placeholder=" …")
    return {
        "said": "" if curve else "<br>".join(html.escape(text, quote=False) for text in ("No curve:", *lines)),
        "x": list(range(1, len(padding) + 1)),
        "y": padding,
        "elbow_x": [] if bend is None else [bend],
        "elbow_y": [] if bend is None else [padding[bend - 1]],
        "here_x": [] if slots is None else [buckets],
        "here_y": [] if slots is None else [max(0.0, 1 - events / slots) if slots else 0.0],
    }


def curve_figure(data: dict[str, Any], *, height: int = 270) -> go.Figure:
    """Draw ``curve_data``."""
    figure = go.Figure(
        [
            go.Scatter(
                x=data["x"], y=data["y"], name="optimum", mode="lines+markers",
                line={"color": palette.BLUE, "width": 2}, marker={"size": 5},
                hovertemplate="%{x} edges: at best %{y:.1%} padding<extra></extra>",
            ),
            go.Scatter(
                x=data["elbow_x"], y=data["elbow_y"], name="elbow", mode="markers",
                marker={"symbol": "diamond-open", "size": 13, "color": palette.VERMILION, "line": {"width": 2}},
                hovertemplate="elbow: %{x} edges<extra></extra>",
            ),
            go.Scatter(
                x=data["here_x"], y=data["here_y"], name="your edges", mode="markers",
                marker={"symbol": "circle", "size": 10, "color": palette.GREEN},
                hovertemplate="your %{x} edges: %{y:.1%} padding<extra></extra>",
            ),
        ]
    )  # fmt: skip
    figure.update_layout(**palette.base_layout(height))
    figure.add_annotation(
        text=data["said"], xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False, font={"size": 11.5}, align="left"
    )
    figure.update_layout(xaxis_visible=not data["said"], yaxis_visible=not data["said"])
    figure.update_layout(margin={"l": 52, "r": 12, "t": 8, "b": 74})
    figure.update_xaxes(title={"text": "bucket edges", "standoff": 4}, showgrid=False, zeroline=False, dtick=2, tick0=2)
    figure.update_yaxes(title="padding", tickformat=".0%", gridcolor=palette.LINE, zeroline=False, rangemode="tozero")
    return figure
