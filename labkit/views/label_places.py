"""Where labels of a scatter plot go: none over another or over a mark, all inside, each as near its mark as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_GRID = 8.0  # pixels between two places that are tried
_GAP = 2.0  # pixels around a label that stay free
_CROSSED = 60.0  # pixels of detour that a leader line over something else is worth
_MISREAD = 60.0  # pixels of detour that it is worth not to stand nearer to another mark than to one's own
_SIDEWAYS = 0.5  # what a pixel beside the mark costs: in a wider figure it is more
_CROWD = 80.0, 30.0  # pixels within which marks are a crowd
_ALONG = np.linspace(0.1, 0.9, 7)  # where leader lines are looked at

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mark:
    """A round mark with its label.

    Attributes:
        x, y: of its centre, in pixels from the left and the top of the plot.
        radius: in pixels.
        labels: its label set in one or several ways: (text, width, height) each, in pixels, the best first.
    """

    x: float
    y: float
    radius: float
    labels: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A label that has its place.

    Attributes:
        text: as it is set.
        x, y: of its centre, in pixels from the left and the top of the plot.
        width, height: in pixels.
    """

    text: str
    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Place) -> bool:
        """Both have a pixel in common."""
        return (
            abs(self.x - other.x) * 2 < self.width + other.width
            and abs(self.y - other.y) * 2 < self.height + other.height
        )


def place_labels(marks: Sequence[Mark], width: float, height: float) -> list[Place | None]:
    """A place for the label of each mark, in the order of the marks; None where there is no room at all.

    Places that are good at this width are so at any larger one, where centres of marks and labels keep their share of
    the width: what is apart sideways only comes farther apart.

    Args:
        marks: may lie on each other.
        width, height: of the plot, in pixels.
    """
    best: tuple[tuple[int, float], list[Place | None]] | None = None
    for order in _orders(marks):
        found, cost = _in_order(marks, order, width, height)
        places = [found.get(i) for i in range(len(marks))]
        worth = places.count(None), cost
        if best is None or worth < best[0]:
            best = worth, places
    return [] if best is None else best[1]


def _orders(marks: Sequence[Mark]) -> list[list[int]]:
    """Who chooses first matters: the crowded, the right ones or those with long names."""
    keys: list[Callable[[int], tuple[float, ...]]] = [
        lambda i: (-_crowd(marks, i), marks[i].x),
        lambda i: (-marks[i].x, -marks[i].y),
        lambda i: (-marks[i].labels[0][1], marks[i].x),
    ]
    return [sorted(range(len(marks)), key=key) for key in keys]


def _crowd(marks: Sequence[Mark], number: int) -> int:
    one = marks[number]
    return sum(abs(one.x - m.x) < _CROWD[0] and abs(one.y - m.y) < _CROWD[1] for m in marks)


def _in_order(
    marks: Sequence[Mark], order: Sequence[int], width: float, height: float
) -> tuple[dict[int, Place], float]:
    """Each takes the best place that is left, then once more with all others in theirs; and what the places cost."""
    found: dict[int, Place] = {}
    costs: dict[int, float] = {}
    for i in (*order, *order):
        taken = [place for other, place in found.items() if other != i]
        best = _best(marks, i, taken, width, height)
        if best is not None:
            costs[i], found[i] = best
    return found, sum(costs.values())


def _best(
    marks: Sequence[Mark], number: int, taken: list[Place], width: float, height: float
) -> tuple[float, Place] | None:
    """The cheapest place and its cost."""
    best: tuple[float, Place] | None = None
    for rank, (text, w, h) in enumerate(marks[number].labels):
        if w > width or h > height:
            continue
        x, y = _tried(marks[number], w, h, width, height)
        cost = _cost(marks, number, taken, (x, y, w, h)) + 4.0 * rank
        at = int(np.argmin(cost)) if len(cost) else 0
        if len(cost) and np.isfinite(cost[at]) and (best is None or cost[at] < best[0]):
            best = float(cost[at]), Place(text, float(x[at]), float(y[at]), w, h)
    return best


def _tried(mark: Mark, w: float, h: float, width: float, height: float) -> tuple[_Floats, _Floats]:
    """Centres to try, all inside: right above and below the mark, beside it, and everywhere on a grid."""
    away = mark.radius + _GAP
    inner = min(max(mark.x, w / 2), width - w / 2)
    near = [
        (inner, mark.y - away - h / 2),
        (inner, mark.y + away + h / 2),
        (mark.x + away + w / 2, mark.y),
        (mark.x - away - w / 2, mark.y),
    ]
    across = np.append(np.arange(w / 2, width - w / 2, _GRID), width - w / 2)
    down = np.append(np.arange(h / 2, height - h / 2, _GRID), height - h / 2)
    x, y = (grid.ravel() for grid in np.meshgrid(across, down))
    x, y = np.append([p[0] for p in near], x), np.append([p[1] for p in near], y)
    inside = (x >= w / 2) & (x <= width - w / 2) & (y >= h / 2) & (y <= height - h / 2)
    return x[inside], y[inside]


def _cost(
    marks: Sequence[Mark], number: int, taken: list[Place], boxes: tuple[_Floats, _Floats, float, float]
) -> _Floats:
    """Pixels from the mark, more where the leader line crosses something; infinite where there is no room."""
    x, y, w, h = boxes
    mark = marks[number]
    # from the mark to the nearest point of the label
    near_x, near_y = np.clip(mark.x, x - w / 2, x + w / 2), np.clip(mark.y, y - h / 2, y + h / 2)
    own = np.hypot(near_x - mark.x, near_y - mark.y) - mark.radius
    cost: _Floats = own + _SIDEWAYS * abs(x - mark.x)
    line_x = mark.x + (near_x - mark.x)[:, None] * _ALONG
    line_y = mark.y + (near_y - mark.y)[:, None] * _ALONG
    for other in marks:
        gap = np.hypot(
            np.clip(other.x, x - w / 2, x + w / 2) - other.x, np.clip(other.y, y - h / 2, y + h / 2) - other.y
        )
        cost[gap < other.radius + 0.99 * _GAP] = np.inf
        apart = np.hypot(other.x - mark.x, other.y - mark.y) > other.radius
        if apart:  # a mark that lies on this one is crossed anyway
            cost += _CROSSED * (_distance(mark, near_x - mark.x, near_y - mark.y, other) < other.radius + _GAP)
            cost += _MISREAD * (gap - other.radius < own)
    for p in taken:
        lies_on = (abs(x - p.x) * 2 < w + p.width + 2 * _GAP) & (abs(y - p.y) * 2 < h + p.height + 2 * _GAP)
        cost[lies_on] = np.inf
        cost += _CROSSED * ((abs(line_x - p.x) * 2 < p.width) & (abs(line_y - p.y) * 2 < p.height)).any(axis=1)
    return cost


def _distance(mark: Mark, dx: _Floats, dy: _Floats, other: Mark) -> _Floats:
    """Pixels from the centre of another mark to leader lines, each from this mark's centre and so long."""
    x, y = other.x - mark.x, other.y - mark.y
    along = np.clip((x * dx + y * dy) / np.maximum(dx * dx + dy * dy, 1e-9), 0.0, 1.0)
    return np.hypot(along * dx - x, along * dy - y)
