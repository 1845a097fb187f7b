"""Which strategies are worth a look: padding against launches, the size of a mark being its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from labkit.experiments.scores import Score
from labkit.units import format_bytes, format_count, format_share
from labkit.views import palette

_SMALLEST, _LARGEST = 9, 34  # pixels
_BEATEN = "<br>another is better in all three"
_PLAIN_TITLE = "batches an epoch (marks: slots of the largest)"
_MODELLED_TITLE = "modelled launches an epoch (marks: peak memory)"


@dataclass(frozen=True, slots=True)
class _Point:
    """A strategy: what is made little of, and how it reads."""

    name: str
    padding: float
    launched: float
    size: float
    words: str

    @property
    def figures(self) -> tuple[float, float, float]:
        return self.padding, self.launched, self.size


def pareto_data(scores: Sequence[Score]) -> dict[str, Any]:
    """A mark for each strategy that fits: padding, launches and memory, which is the size of the mark.

    Of a model that is traced these are its launches and its peak; without one, batches (each is launched anew) and
    slots of the largest batch. The front are the strategies that no other beats in all three; those that coincide
    share one label.
    """
    modelled = _modelled_points(scores)
    points = modelled or _plain_points(scores)
    front = [not any(_beats(other.figures, point.figures) for other in points) for point in points]
    names: dict[tuple[float, ...], list[str]] = {}
    for point in points:
        names.setdefault(point.figures, []).append(point.name)
    figures = [p.figures for p in points]
    first = [figures.index(f) == i for i, f in enumerate(figures)]
    most = max((p.size for p in points), default=1.0) or 1.0
    return {
        "x": [p.launched for p in points],
        "y": [p.padding for p in points],
        "text": [", ".join(names[f]) if on and one else "" for f, on, one in zip(figures, front, first, strict=True)],
        "size": [_SMALLEST + (_LARGEST - _SMALLEST) * (p.size / most) ** 0.5 for p in points],
        "symbol": ["circle" if on else "circle-open" for on in front],
        "hover": [
            f"{p.name}: {format_share(p.padding)} padding<br>{p.words}{'' if on else _BEATEN}"
            for p, on in zip(points, front, strict=True)
        ],
        "title": _MODELLED_TITLE if modelled else _PLAIN_TITLE,
    }


def _plain_points(scores: Sequence[Score]) -> list[_Point]:
    return [
        _Point(
            str(s.strategy),
            w.padding_ratio,
            float(w.batches),
            float(w.largest_batch_slots),
            f"{format_count(w.batches)} batches<br>largest batch {format_count(w.largest_batch_slots)} slots",
        )
        for s in scores
        if (w := s.what_if) is not None
    ]


def _modelled_points(scores: Sequence[Score]) -> list[_Point]:
    """Of the strategies that the model takes; empty where none is modelled."""
    found = []
    for s in scores:
        if s.what_if is None or s.modelled is None:
            continue
        launches, peak = (s.modelled.figures[name].value for name in ("launches", "peak_bytes"))
        if launches is not None and peak is not None:
            words = f"{format_count(launches)} launches, peak {format_bytes(peak)} (modelled)"
            found.append(_Point(str(s.strategy), s.what_if.padding_ratio, float(launches), float(peak), words))
    return found


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
    figure.update_xaxes(
        title={"text": data["title"], "standoff": 4}, type="log", showgrid=False, dtick=1, zeroline=False
    )
    figure.update_yaxes(title="padding", tickformat=".0%", gridcolor=palette.LINE, zeroline=False, range=[-0.06, 1.06])
    return figure
