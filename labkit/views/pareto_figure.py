"""Which strategies are worth a look: padding against launches, the size of a mark being its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from labkit.experiments.scores import Score
from labkit.units import format_count, format_share
from labkit.views import palette

_SMALLEST, _LARGEST = 9, 34  # pixels


def pareto_data(scores: Sequence[Score]) -> dict[str, Any]:
    """A mark for each strategy that fits: padding, batches (each is launched anew), slots of the largest batch.

    The front are the strategies that no other beats in all three; those that coincide share one label.
    """
    fits = [s.what_if for s in scores if s.what_if is not None]
    points = [(w.padding_ratio, float(w.batches), float(w.largest_batch_slots)) for w in fits]
    front = [not any(_beats(other, point) for other in points) for point in points]
    names: dict[tuple[float, ...], list[str]] = {}
    for w, point in zip(fits, points, strict=True):
        names.setdefault(point, []).append(str(w.policy.strategy))
    first = [points.index(point) == i for i, point in enumerate(points)]
    most = max((p[2] for p in points), default=1.0) or 1.0
    return {
        "x": [p[1] for p in points],
        "y": [p[0] for p in points],
        "text": [", ".join(names[p]) if on and one else "" for p, on, one in zip(points, front, first, strict=True)],
        "size": [_SMALLEST + (_LARGEST - _SMALLEST) * (p[2] / most) ** 0.5 for p in points],
        "symbol": ["circle" if on else "circle-open" for on in front],
        "hover": [
            f"{w.policy.strategy}: {format_share(p[0])} padding<br>{format_count(p[1])} batches<br>largest batch "
            f"{format_count(p[2])} slots{'' if on else '<br>another is better in all three'}"
            for w, p, on in zip(fits, points, front, strict=True)
        ],
    }


def _beats(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """No worse in any of them, and better in one."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


def pareto_figure(data: dict[str, Any], *, height: int = 230) -> go.Figure:
    """Draw ``pareto_data``: filled marks are the front, rings are beaten in all three."""
    figure = go.Figure(
        go.Scatter(
            x=data["x"], y=data["y"], text=data["text"], mode="markers+text", textposition="top center",
            textfont={"size": 10.5}, hovertext=data["hover"], hoverinfo="text", cliponaxis=False,
            marker={"size": data["size"], "symbol": data["symbol"], "color": palette.BLUE, "opacity": 0.75},
        )
    )  # fmt: skip
    figure.update_layout(**{**palette.base_layout(height), "showlegend": False})
    figure.update_layout(margin={"l": 52, "r": 16, "t": 16, "b": 40})
    title = "batches an epoch (marks: slots of the largest)"
    figure.update_xaxes(title={"text": title, "standoff": 4}, type="log", showgrid=False, dtick=1, zeroline=False)
    figure.update_yaxes(title="padding", tickformat=".0%", gridcolor=palette.LINE, zeroline=False, range=[-0.06, 1.06])
    return figure
