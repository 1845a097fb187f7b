"""One picture of where the time of an epoch goes: useful work, padding and gap, modelled beside measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from labkit.experiments.compare_rows import Compared
from labkit.experiments.time_split import TimeSplit, measured_split, modelled_split
from labkit.units import format_seconds, format_share
from labkit.views import palette

_PARTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("useful_s", "useful: real events", {"color": palette.BLUE}),
    (
        "padding_s",
        "padding",
        {
            "color": "rgba(230, 159, 0, 0.35)",
            "line": {"color": palette.ORANGE, "width": 1},
            "pattern": {"shape": "/", "fgcolor": palette.ORANGE, "size": 6, "solidity": 0.25},
        },
    ),
    (
        "gap_s",
        "gap: no work runs",
        {
            "color": "rgba(127, 127, 127, 0.15)",
            "line": {"color": palette.GREY, "width": 1},
            "pattern": {"shape": ".", "fgcolor": palette.GREY, "size": 5, "solidity": 0.3},
        },
    ),
)
_ROW_HEIGHT, _AROUND = 26, 120


def split_data(rows: Sequence[Compared], split: Callable[[Compared], TimeSplit | None]) -> dict[str, Any]:
    """Bars of one panel, slowest first, so that the fastest is drawn on top.

    Returns:
        ``y`` names of all strategies, ``useful_s``, ``padding_s``, ``gap_s`` (None where there is no time), ``text``
        behind each bar, ``end`` of each bar in seconds (0 where there is none).
    """
    found = [(str(row.strategy), split(row)) for row in reversed(rows)]
    return {
        "y": [name for name, _ in found],
        **{part: [None if s is None else getattr(s, part) for _, s in found] for part, _, _ in _PARTS},
        "text": ["  –" if s is None else f"  {format_seconds(s.total_s)}" for _, s in found],
        "end": [0.0 if s is None else s.total_s for _, s in found],
    }


def time_split_figure(rows: Sequence[Compared], modelled_title: str, measured_title: str) -> go.Figure:
    """Horizontal stacked bars, fastest on top; modelled on the left, measured on the right, with axes of their own.

    Args:
        rows: strategies, fastest first; those with neither time are left out.
        modelled_title: the GPU; measured_title: the device.
    """
    panels = [
        (title, split)
        for title, split in ((modelled_title, modelled_split), (measured_title, measured_split))
        if any(split(row) is not None for row in rows)
    ]
    shown = [row for row in rows if any(split(row) is not None for _, split in panels)]
    figure = make_subplots(
        rows=1,
        cols=max(1, len(panels)),
        shared_yaxes=True,
        horizontal_spacing=0.09,
        subplot_titles=[title for title, _ in panels] or None,
    )
    for column, (_, split) in enumerate(panels, start=1):
        _draw(figure, column, split_data(shown, split))
    figure.update_layout(
        **palette.base_layout(_AROUND + _ROW_HEIGHT * max(3, len(shown)), barmode="stack", bargap=0.35)
    )
    figure.update_layout(margin={"l": 110, "r": 70, "t": 34, "b": 64})
    figure.update_annotations(font={"size": 12, "color": palette.GREY})
    figure.update_yaxes(showgrid=False, ticksuffix="  ")
    return figure


def _draw(figure: go.Figure, column: int, data: dict[str, Any]) -> None:
    for part, name, marker in _PARTS:
        hover = [
            "" if s is None or not end else f"{name}: {format_seconds(s)}, {format_share(s / end)} of the epoch"
            for s, end in zip(data[part], data["end"], strict=True)
        ]
        bars = go.Bar(
            y=data["y"],
            x=data[part],
            name=name,
            legendgroup=name,
            showlegend=column == 1,
            orientation="h",
            marker=marker,
            customdata=hover,
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        )
        figure.add_trace(bars, row=1, col=column)
    ends = go.Scatter(
        y=data["y"],
        x=data["end"],
        text=data["text"],
        mode="text",
        textposition="middle right",
        textfont={"size": 11.5},
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )
    figure.add_trace(ends, row=1, col=column)
    most = max(data["end"], default=0.0) or 1.0
    figure.update_xaxes(
        range=[0, most * 1.18],
        title={"text": "time of an epoch, s", "standoff": 4},
        gridcolor=palette.LINE,
        zeroline=False,
        nticks=6,
        row=1,
        col=column,
    )
