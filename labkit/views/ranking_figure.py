"""One picture that ranks the strategies: how much of the computed work is real events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from labkit.experiments.scores import Score, ranked
from labkit.units import format_share
from labkit.views import palette


def ranking_data(scores: Sequence[Score]) -> dict[str, Any]:
    """Bars of the ranking, worst first, so that the best is drawn on top.

    Returns:
        ``y`` labels, ``useful`` and ``padding`` shares of the slots, ``text`` of each bar.
    """
    shown = [s for s in reversed(ranked(scores)) if s.what_if is not None]
    rows = [(s, s.what_if) for s in shown if s.what_if is not None]
    return {
        "y": [str(s.strategy) for s, _ in rows],
        "useful": [1 - w.padding_ratio for _, w in rows],
        "padding": [w.padding_ratio for _, w in rows],
        "text": [_text(s) for s, _ in rows],
    }


def _text(score: Score) -> str:
    w = score.what_if
    if w is None or not w.kept_events:
        return "  no events"
    loss = f", −{format_share(w.lost_share)} events" if w.events_lost else ""
    return f"  {score.slots_per_event:.2f} slots/event{loss}"


def ranking_figure(scores: Sequence[Score], *, height: int = 270) -> go.Figure:
    """Horizontal bars, best on top: real events and padding as shares of all slots; lost events in words.

    Args:
        scores: of all strategies; those without figures are left out.
        height: in pixels.
    """
    data = ranking_data(scores)
    figure = go.Figure(
        [
            go.Bar(
                y=data["y"],
                x=data["useful"],
                name="real events",
                orientation="h",
                marker={"color": palette.BLUE},
                hovertemplate="%{y}: %{x:.1%} of the slots are real events<extra></extra>",
            ),
            go.Bar(
                y=data["y"],
                x=data["padding"],
                name="padding",
                orientation="h",
                marker={
                    "color": "rgba(230, 159, 0, 0.35)",
                    "line": {"color": palette.ORANGE, "width": 1},
                    "pattern": {"shape": "/", "fgcolor": palette.ORANGE, "size": 6, "solidity": 0.25},
                },
                hovertemplate="%{y}: %{x:.1%} of the slots are padding<extra></extra>",
            ),
            go.Scatter(
                y=data["y"],
                x=[1.0] * len(data["y"]),
                text=data["text"],
                mode="text",
                textposition="middle right",
                textfont={"size": 11.5},
                showlegend=False,
                hoverinfo="skip",
                cliponaxis=False,
            ),
        ]
    )
    figure.update_layout(**palette.base_layout(height), barmode="stack", bargap=0.35)
    figure.update_layout(margin={"l": 110, "r": 178, "t": 8, "b": 46})
    figure.update_xaxes(
        range=[0, 1],
        tickformat=".0%",
        title={"text": "share of all slots", "standoff": 4},
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(showgrid=False, ticksuffix="  ")
    return figure
