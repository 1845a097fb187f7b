"""batch_mix: which batches an epoch of a policy is made of, as a handful of shapes with their numbers. NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labkit.batching.expected_max import expected_max, law_of_max
from labkit.batching.figures import WhatIf
from labkit.batching.group_figures import GroupFigures
from labkit.batching.groups import Groups, resolve_groups, round_up
from labkit.batching.policy import PadTo
from labkit.batching.strategies import Layout
from labkit.cost.shapes import BatchShape, Shapes
from labkit.lengths.histogram import LengthHistogram

#: Widths that stand for all that a shuffle can give, each equally likely: the mean of every eighth of the law.
_NODES = 8

_EXACT = "every batch has one of these shapes"
_WIDTHS = f"the law of the longest row over shuffles, in {_NODES} parts"
_MEAN = "every batch as the mean of all; the largest as the budget allows"


@dataclass(frozen=True, eq=False, slots=True)
class BatchMix:
    """The batches of an epoch.

    Attributes:
        counts: (n,) how many batches have each shape.
        shapes: (n,) shapes.
        largest: the shapes among which the one with the highest peak memory is.
        how: exact, or which expectation.
    """

    counts: NDArray[np.float64]
    shapes: Shapes
    largest: Shapes
    how: str


_Kind = tuple[float, BatchShape]


def batch_mix(scored: WhatIf, histogram: LengthHistogram) -> BatchMix:
    """The batches of an epoch of a policy that was scored on these lengths.

    Cost: O(buckets); O(distinct lengths) where batches are padded to their own longest row or not at all.
    """
    match scored.policy.spec.layout:
        case Layout.PADDED:
            groups = resolve_groups(scored.policy, histogram)
            if groups.pad_to is PadTo.BATCH_MAX:
                return _mix(list(_to_longest(groups, scored.groups, histogram)), _WIDTHS, _widest(scored.groups))
            return _mix([kind for group in scored.groups for kind in _rectangles(group)], _EXACT)
        case Layout.PACKED_ROWS:
            return _mix(list(_packs(scored)), _EXACT)
        case Layout.PACKED_SEQUENCE:
            return _fixed_rows(scored, histogram)
        case Layout.JAGGED | Layout.SEGMENTED | Layout.SPARSE:
            return _filled_by_events(scored, histogram)


def _mix(kinds: list[_Kind], how: str, largest: list[BatchShape] | None = None) -> BatchMix:
    kept = [kind for kind in kinds if kind[0] > 0]
    shapes = Shapes.of(shape for _, shape in kept)
    return BatchMix(
        np.array([count for count, _ in kept], dtype=np.float64),
        shapes,
        shapes if largest is None else Shapes.of(largest),
        how,
    )


def _rectangles(group: GroupFigures) -> Iterator[_Kind]:
    """Full batches, and a last one with fewer rows unless ghosts fill it."""
    partial = int(group.batches > 0 and not group.ghost_rows and group.last_rows < group.rows)
    yield group.batches - partial, BatchShape(rows=group.rows, width=group.width)
    yield partial, BatchShape(rows=group.last_rows, width=group.width)


def _to_longest(groups: Groups, figures: tuple[GroupFigures, ...], histogram: LengthHistogram) -> Iterator[_Kind]:
    bounds = groups.bounds(histogram)
    for k, group in enumerate(figures):
        low, high = int(bounds[k]), int(bounds[k + 1])
        if not group.batches:
            continue
        widths = round_up(np.minimum(histogram.values[low:high], groups.limits[k]), groups.length_multiple)
        sums = histogram.count_sums[low + 1 : high + 1] - histogram.count_sums[low]
        for count, rectangle in _rectangles(group):
            if count:
                for width in _nodes_of_max(widths, sums, int(rectangle.rows)):
                    yield count / _NODES, replace(rectangle, width=width)


def _widest(figures: tuple[GroupFigures, ...]) -> list[BatchShape]:
    """Each group's batch of the widest kind: nothing is larger."""
    full = [(g, g.rows if g.batches > 1 or g.ghost_rows else g.last_rows) for g in figures if g.batches]
    return [BatchShape(rows=rows, width=g.largest_batch_slots / rows) for g, rows in full if rows]


def _packs(scored: WhatIf) -> Iterator[_Kind]:
    packs, rows = scored.packs or 0, scored.policy.rows
    if not packs or scored.packing is None:
        return
    full, rest = divmod(packs, rows)
    width, pieces = scored.slots / packs, scored.packing.pieces / packs
    yield full, BatchShape(rows=rows, width=width, segments=rows * pieces)
    yield int(rest > 0), BatchShape(rows=rest, width=width, segments=rest * pieces)


def _fixed_rows(scored: WhatIf, histogram: LengthHistogram) -> BatchMix:
    """Rows without padding: the mean of the events, and the law of the longest row, which decides on the steps."""
    sequences, rows = histogram.sequences, scored.policy.rows
    capped = histogram.capped(scored.policy.max_length)
    full, rest = divmod(sequences, rows)
    empty = int(capped.counts[0]) if capped.values[0] == 0 else 0
    filled, mean = 1 - empty / sequences, capped.events / sequences
    kinds = [
        (count / _NODES, BatchShape(rows=r, events=r * mean, longest=longest, filled=r * filled))
        for count, r in ((full, rows), (int(rest > 0 and scored.batches > full), rest))
        if count
        for longest in _nodes_of_max(capped.values, capped.count_sums[1:], r)
    ]
    most = min(rows, sequences)
    events = scored.largest_batch_slots
    return _mix(kinds, _WIDTHS, [BatchShape(rows=most, events=events, longest=capped.max, filled=most)])


def _filled_by_events(scored: WhatIf, histogram: LengthHistogram) -> BatchMix:
    """Batches of which only the budget is known: all of them as the mean."""
    if not scored.batches:
        return _mix([], _MEAN)
    capped = histogram.capped(scored.policy.max_length)
    rows = histogram.sequences / scored.batches
    longest = 0.0  # of a sparse matrix nothing depends on it
    if scored.policy.spec.layout is Layout.JAGGED:
        longest = expected_max(capped.values, capped.count_sums[1:], max(1, min(round(rows), histogram.sequences)))
    mean = BatchShape(rows=rows, events=scored.kept_events / scored.batches, longest=longest)
    most_events = scored.largest_batch_slots
    scale = most_events / mean.events if mean.events else 1.0
    most_rows = min(rows * scale, scored.policy.max_rows, histogram.sequences)
    largest = BatchShape(rows=np.ceil(most_rows), events=most_events, longest=capped.max)
    return _mix([(scored.batches, mean)], _MEAN, [replace(largest, longest=w) for w in _hungriest(most_events, capped)])


def _hungriest(events: float, capped: LengthHistogram) -> set[int]:
    """The longest of all, and the longest row that makes the most of windows as wide as it, for attention in them.

    Those two differ where a shorter one needs a window more: of 16 384 events a row of 8192 makes 2 windows, and one of
    8191 makes 3, half as much again.
    """
    cells = np.ceil(events / np.maximum(1, capped.values)) * np.square(capped.values, dtype=np.float64)
    return {capped.max, int(capped.values[cells.argmax()])}


def _nodes_of_max(values: NDArray[np.int64], count_sums: NDArray[np.int64], rows: int) -> list[float]:
    """The mean of each eighth of the law of the longest of ``rows`` draws; the mean of all is the exact expectation."""
    first, at_most = law_of_max(count_sums, rows)
    mass = np.diff(at_most, prepend=0.0)
    sums = np.concatenate(([0.0], np.cumsum(mass * values[first:])))
    edges = np.interp(np.linspace(0, 1, _NODES + 1), np.concatenate(([0.0], at_most)), sums)
    nodes: list[float] = (np.diff(edges) * _NODES).tolist()
    return nodes
