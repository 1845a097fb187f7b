"""What a cap cuts: users and events, and what each side of the cut never shows."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from labkit.experiments.truncation_sides import CapPoint, Side
from labkit.views import palette

_SIDES = {
    Side.RECENT: (palette.BLUE, "solid", "circle"),
    Side.OLDEST: (palette.VERMILION, "dash", "square"),
    Side.STOCHASTIC: (palette.GREEN, "dot", "diamond"),
}


def cap_figure(points: Sequence[CapPoint], *, height: int = 320) -> go.Figure:
    """Users cut and events lost against the cap, the same on every side of the cut."""
    caps = [p.max_length for p in points]
    figure = go.Figure(
        [
            _line(caps, [p.truncated_share for p in points], "users cut", palette.ORANGE, "dash", "square"),
            _line(caps, [p.lost_share for p in points], "events lost", palette.BLUE, "solid", "circle"),
        ]
    )
    return _laid_out(figure, "share of all, exact", height)


def side_figure(points: Sequence[CapPoint], *, height: int = 320) -> go.Figure:
    """Users whose latest event is seen in an epoch, by the side that is kept: what a recommender cannot do without."""
    caps = [p.max_length for p in points]
    figure = go.Figure(
        [_line(caps, [p.latest_share[s] for p in points], f"{s} kept", *_SIDES[s]) for s in _SIDES]
        + [
            _line(
                caps,
                [p.unseen_share[Side.STOCHASTIC] for p in points],
                "events never seen by a random window",
                palette.GREY,
                "dashdot",
                "cross",
            )
        ]
    )
    return _laid_out(figure, "share, exact expectation", height)


def _line(x: list[int], y: list[float], name: str, color: str, dash: str, symbol: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers",
        line={"color": color, "dash": dash, "width": 2},
        marker={"color": color, "symbol": symbol, "size": 7},
        hovertemplate="cap %{x}: %{y:.2%}<extra>" + name + "</extra>",
    )


def _laid_out(figure: go.Figure, title: str, height: int) -> go.Figure:
    figure.update_layout(**palette.base_layout(height))
    figure.update_layout(margin={"t": 12})
    figure.update_xaxes(type="log", title={"text": "cap (events)", "standoff": 4}, gridcolor=palette.LINE)
    figure.update_yaxes(tickformat=".0%", range=[-0.02, 1.02], title=title, gridcolor=palette.LINE)
    return figure
