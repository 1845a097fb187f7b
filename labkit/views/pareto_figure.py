"""Which strategies are worth a look: padding against launches, the size of a mark being its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from labkit.experiments.scores import Score
from labkit.units import format_bytes, format_count, format_share
from labkit.views import palette
from labkit.views.label_places import Mark, place_labels

_SMALLEST, _LARGEST = 9, 34  # pixels
_DOMINATED = "<br>dominated: another is at least as good in all three, and better in one"
_PLAIN_TITLE = "batches an epoch (size: the largest)"
_MODELLED_TITLE = "modelled launches (size: peak memory)"
#: What is above 1 or below 0 is room for marks and labels.
_PADDING_RANGE = (-0.2, 1.14)
_HEIGHT = 270
_MARGIN = {"l": 52, "r": 12, "t": 8, "b": 74}
#: Labels are placed for the narrowest figure; wider ones keep them apart.
_NARROWEST = 300
_MOST_TICKS = 7
_TOUCHES = 4.0  # pixels: a label so near above or below its mark needs no line
_SAME_PLACE = 5.0  # pixels between marks that share a label
_LETTER, _LINE, _AROUND = 6.3, 13.0, 4.0  # pixels of a label's text, generously


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
    slots of the largest batch. The front are the strategies that none dominates, which is to be at least as good in
    all three and better in one; those that lie in one place share a label.
    """
    modelled = _modelled_points(scores)
    points = modelled or _plain_points(scores)
    front = [not any(_dominates(other.figures, point.figures) for other in points) for point in points]
    most = max((p.size for p in points), default=1.0) or 1.0
    sizes = [_SMALLEST + (_LARGEST - _SMALLEST) * (p.size / most) ** 0.5 for p in points]
    low, high = _across([p.launched for p in points])
    return {
        "x": [p.launched for p in points],
        "y": [p.padding for p in points],
        "size": sizes,
        "symbol": ["circle" if on else "circle-open" for on in front],
        "hover": [
            f"{p.name}: {format_share(p.padding)} padding<br>{p.words}{'' if on else _DOMINATED}"
            for p, on in zip(points, front, strict=True)
        ],
        "title": _MODELLED_TITLE if modelled else _PLAIN_TITLE,
        "range": [low, high],
        "ticks": _ticks(low, high),
        "labels": _labels(points, sizes, low, high),
    }


def _across(launched: Sequence[float]) -> tuple[float, float]:
    """Ends of the axis, as powers of ten: all marks inside, with room beside them."""
    powers = [math.log10(max(x, 1.0)) for x in launched] or [0.0, 1.0]
    room = max(0.15, 0.16 * (max(powers) - min(powers)))
    return min(powers) - room, max(powers) + room


def _ticks(low: float, high: float) -> list[int]:
    """1, 2, 5, 10 and so on inside, or powers of ten alone where these are many."""
    found = [f * 10**power for power in range(max(0, math.floor(low)), math.ceil(high) + 1) for f in (1, 2, 5)]
    found = [tick for tick in found if low <= math.log10(tick) <= high]
    return found if len(found) <= _MOST_TICKS else [t for t in found if str(t).strip("0") == "1"]


def _labels(points: Sequence[_Point], sizes: Sequence[float], low: float, high: float) -> list[dict[str, Any]]:
    """A label for each place where there are marks, with the names of all that lie there.

    Returns:
        For each: ``text``; ``x`` and ``y`` of the mark and ``ax`` and ``ay`` of the label's centre, on the axes (x: as
        powers of ten); ``standoff``, the pixels from the mark's centre at which the line between them ends;
        ``touches``: it needs no line.
    """
    width, height = plot_size(_NARROWEST)
    bottom, top = _PADDING_RANGE
    at = [
        (width * (math.log10(max(p.launched, 1.0)) - low) / (high - low), height * (top - p.padding) / (top - bottom))
        for p in points
    ]
    here: dict[int, list[int]] = {}  # the first mark of a place: all of them
    for i in range(len(points)):
        same = (j for j in here if math.dist(at[i], at[j]) < _SAME_PLACE)
        here.setdefault(next(same, i), []).append(i)
    marks = [
        Mark(*at[i], max(sizes[j] for j in found) / 2, _settings([points[j].name for j in found]))
        for i, found in here.items()
    ]
    return [
        {
            "text": place.text,
            "x": low + (high - low) * mark.x / width,
            "y": points[i].padding,
            "ax": low + (high - low) * place.x / width,
            "ay": top - (top - bottom) * place.y / height,
            "standoff": mark.radius,
            "touches": place.x == mark.x and abs(place.y - mark.y) < mark.radius + place.height / 2 + _TOUCHES,
        }
        for i, mark, place in zip(here, marks, place_labels(marks, width, height), strict=True)
        if place is not None
    ]


def plot_size(width: float) -> tuple[float, float]:
    """Pixels of the plot in a figure of so many pixels."""
    return width - _MARGIN["l"] - _MARGIN["r"], _HEIGHT - _MARGIN["t"] - _MARGIN["b"]


def _settings(names: Sequence[str]) -> tuple[tuple[str, float, float], ...]:
    """The names on one line, on two, and so on, with the pixels that they take."""
    found = []
    for lines in range(1, len(names) + 1):
        each = math.ceil(len(names) / lines)
        rows = [", ".join(names[i : i + each]) for i in range(0, len(names), each)]
        size = _AROUND + _LETTER * (max(map(len, rows)) + 1), _AROUND + _LINE * len(rows)
        found.append((",<br>".join(rows), *size))
    return tuple(found)


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


def _dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """No worse in any of them, and better in one."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


def pareto_figure(data: dict[str, Any], *, height: int = _HEIGHT) -> go.Figure:
    """Draw ``pareto_data``: filled marks are the front, rings are dominated; a legend says so.

    The marks are the first trace.
    """
    figure = go.Figure(
        [
            go.Scatter(
                x=data["x"], y=data["y"], mode="markers", hovertext=data["hover"], hoverinfo="text", cliponaxis=False,
                marker={
                    "size": data["size"], "symbol": data["symbol"], "color": palette.BLUE, "opacity": 0.9,
                    "line": {"color": palette.BLUE, "width": 1.6},
                },
                showlegend=False,
            ),
            *(
                go.Scatter(
                    x=[None], y=[None], name=name, mode="markers", hoverinfo="skip",
                    marker={"size": 9, "symbol": symbol, "color": palette.BLUE},
                )
                for name, symbol in (("on the Pareto front", "circle"), ("dominated", "circle-open"))
            ),
        ]
    )  # fmt: skip
    figure.update_layout(**palette.base_layout(height))
    figure.update_layout(margin=_MARGIN, annotations=pareto_labels(data))
    figure.update_layout(legend={"itemclick": False, "itemdoubleclick": False, "font": {"size": 11}})
    figure.update_xaxes(
        title={"text": data["title"], "standoff": 4, "font": {"size": 11.5}}, type="log", range=data["range"],
        tickvals=data["ticks"], showgrid=False, zeroline=False,
    )  # fmt: skip
    figure.update_yaxes(
        title="padding", tickformat=".0%", gridcolor=palette.LINE, zeroline=False, range=_PADDING_RANGE,
        tickvals=[0, 0.25, 0.5, 0.75, 1],
    )  # fmt: skip
    return figure


def pareto_labels(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Labels of ``pareto_data`` as annotations, each with a thin line to its mark."""
    fixed = {
        "axref": "x", "ayref": "y", "xanchor": "center", "yanchor": "middle", "arrowhead": 0, "arrowwidth": 1,
        "arrowcolor": palette.GREY, "borderpad": 0, "font": {"size": 10.5, "color": palette.GREY},
    }  # fmt: skip
    found = []
    for label in data["labels"]:
        line = {name: label[name] for name in ("text", "x", "y", "ax", "ay", "standoff")}
        alone = {"text": label["text"], "x": label["ax"], "y": label["ay"], "showarrow": False}
        found.append({**fixed, **(alone if label["touches"] else line)})
    return found
