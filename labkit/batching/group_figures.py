"""Exact figures of each group of a padded policy, by prefix sums of the histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.batching.expected_max import expected_max
from labkit.batching.groups import BatchSplit, Groups, round_up
from labkit.batching.policy import PadTo
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One bucket (or the only group) in numbers, for one epoch.

    Attributes:
        edge: longest length of the group.
        width: padded width.
        sequences: sequences that belong to it.
        rows: rows of a full batch.
        last_rows: sequences in the last batch.
        batches: batches of an epoch.
        slots: cells of its rectangles, ghost rows included.
        kept_events: events that reach the model.
        sequences_truncated: sequences that lose a part.
        sequences_dropped: sequences left out by ``drop_last``.
        ghost_rows: empty rows added for static shapes.
        largest_batch_slots: slots of its largest batch (an upper bound where batches are padded to their maximum).
        distinct_widths: how many widths its batches can have.
        batches_over_budget: batches of a single row wider than the token budget.
    """

    edge: int
    width: int
    sequences: int
    rows: int
    last_rows: int
    batches: int
    slots: int | float
    kept_events: int | float
    sequences_truncated: int | float
    sequences_dropped: int
    ghost_rows: int
    largest_batch_slots: int
    distinct_widths: int
    batches_over_budget: int

    @property
    def padding_ratio(self) -> float:
        """1 - kept events / slots, 0 without slots."""
        return 1 - self.kept_events / self.slots if self.slots else 0.0


def group_figures(groups: Groups, histogram: LengthHistogram) -> tuple[GroupFigures, ...]:
    """Figures of every group, short to long. Cost: O(K log m); O(m) more for ``pad_to='batch_max'``."""
    bounds = groups.bounds(histogram)
    # where each group's truncation starts: values[cuts[k]:bounds[k + 1]] lose events
    cuts = np.clip(np.searchsorted(histogram.values, groups.limits, side="right"), bounds[:-1], bounds[1:])
    counts = np.diff(histogram.count_sums[bounds])
    truncated = histogram.count_sums[bounds[1:]] - histogram.count_sums[cuts]
    kept = histogram.event_sums[cuts] - histogram.event_sums[bounds[:-1]] + groups.limits * truncated
    return tuple(
        _figures(
            groups, histogram, k, (int(bounds[k]), int(bounds[k + 1])), int(counts[k]), int(kept[k]), int(truncated[k])
        )
        for k in range(groups.edges.size)
    )


def _figures(
    groups: Groups, histogram: LengthHistogram, k: int, span: tuple[int, int], sequences: int, kept: int, truncated: int
) -> GroupFigures:
    split = groups.split(k, sequences)
    width = int(groups.widths[k])
    ghosts = split.rows - split.last if groups.static and split.batches else 0
    in_batches = sequences - split.dropped
    slots: int | float = (in_batches + ghosts) * width
    widest, distinct = width, 1
    if groups.pad_to is PadTo.BATCH_MAX and split.batches:
        slots, widest, distinct = _batch_max_slots(groups, histogram, k, span, split)
    share = in_batches / sequences if split.dropped else 1
    slots = max(slots, kept * share)  # an expectation that is rounded down must not leave less room than events
    fullest = split.rows if split.batches > 1 or ghosts else split.last
    return GroupFigures(
        edge=int(groups.edges[k]),
        width=width,
        sequences=sequences,
        rows=split.rows,
        last_rows=split.last,
        batches=split.batches,
        slots=slots,
        kept_events=kept * share,
        sequences_truncated=truncated * share,
        sequences_dropped=split.dropped,
        ghost_rows=ghosts,
        largest_batch_slots=fullest * widest,
        distinct_widths=distinct,
        batches_over_budget=_over_budget(groups, histogram, k, span, split),
    )


def _over_budget(groups: Groups, histogram: LengthHistogram, k: int, span: tuple[int, int], split: BatchSplit) -> int:
    """Batches above the token budget: those of one row, of the bucket's width or of their own length."""
    if groups.budget is None or not groups.over_budget[k]:
        return 0
    if groups.pad_to is PadTo.EDGE:
        return split.batches
    low, high = span
    widths = round_up(np.minimum(histogram.values[low:high], groups.limits[k]), groups.length_multiple)
    return int(histogram.counts[low:high][widths > groups.budget].sum())


def _batch_max_slots(
    groups: Groups, histogram: LengthHistogram, k: int, span: tuple[int, int], split: BatchSplit
) -> tuple[float, int, int]:
    """Expected slots over shuffles, widest possible batch, number of widths that can occur."""
    low, high = span
    kept = np.minimum(histogram.values[low:high], groups.limits[k])
    widths = round_up(kept, groups.length_multiple)
    sums = histogram.count_sums[low + 1 : high + 1] - histogram.count_sums[low]
    full = split.batches if split.last == split.rows else split.batches - 1
    slots = 0.0
    if full:
        slots += full * split.rows * expected_max(widths, sums, split.rows)
    if full < split.batches:
        slots += split.last * expected_max(widths, sums, split.last)
    return slots, int(widths[-1]), 1 + int(np.count_nonzero(widths[1:] != widths[:-1]))  # they rise
