"""Sums over the sequences of each batch of a plan: events kept and lost, and what a batch costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.policy import Overflow
from labkit.batching.strategies import Layout

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


class BatchSums(NamedTuple):
    """Events of some batches.

    Attributes:
        kept: (n,) int64, events that reach the model.
        lost: (n,) int64, events cut from the sequences of the batch; of a split history they count where its oldest
            piece is.
        cut: (n,) int64, sequences of the batch that lose events so.
    """

    kept: NDArray[np.int64]
    lost: NDArray[np.int64]
    cut: NDArray[np.int64]


class Kept(NamedTuple):
    """Of each given position of a plan's order: events kept, and events cut before them."""

    kept: NDArray[np.int64]
    lost: NDArray[np.int64]


def kept_at(
    plan: EpochPlan, lengths: NDArray[np.integer], at: NDArray[np.int64], limits: NDArray[np.int64] | np.int64
) -> Kept:
    """Events kept and cut at positions of ``plan.order``, (n,) int64 each.

    Args:
        plan: of these lengths.
        lengths: (N,) lengths of the data set.
        at: (n,) int64, positions.
        limits: most events kept of a sequence: one number, or one a position.
    """
    own = lengths[plan.order[at]].astype(np.int64)
    if plan.event_start is None or plan.event_stop is None:
        kept = np.minimum(own, limits)
        return Kept(kept, own - kept)
    start = plan.event_start[at]
    oldest = start == own - np.minimum(own, limits)
    return Kept(plan.event_stop[at] - start, np.where(oldest, start, 0))


def is_split(plan: EpochPlan) -> bool:
    """A sequence may be in several places, in pieces."""
    return plan.event_start is not None and plan.policy.overflow is Overflow.SPLIT


def batch_sums(
    plan: EpochPlan, lengths: NDArray[np.integer], limits: NDArray[np.int64], batches: NDArray[np.int64]
) -> BatchSums:
    """Events of some batches of a plan.

    Args:
        plan: of these lengths.
        lengths: (N,) lengths of the data set.
        limits: (B,) int64, most events kept of a sequence of each batch of the plan.
        batches: (n,) int64, which batches.

    Cost: O(sequences of these batches), chunked.
    """
    low, high = plan.batch_offsets[batches], plan.batch_offsets[batches + 1]
    found = BatchSums(*(np.zeros(batches.size, dtype=np.int64) for _ in range(3)))
    for first, stop, at in arrange.spans(low, high):
        sizes = high[first:stop] - low[first:stop]
        starts = np.cumsum(sizes) - sizes
        own = kept_at(plan, lengths, at, np.repeat(limits[batches[first:stop]], sizes))
        for sums, values in zip(found, (own.kept, own.lost, own.lost > 0), strict=True):
            sums[first:stop] = np.add.reduceat(values, starts, dtype=np.int64)
    return found


def batch_costs(
    plan: EpochPlan, lengths: NDArray[np.integer], limits: NDArray[np.int64], alpha: float
) -> NDArray[np.float64]:
    """(B,) float64: slots of each batch, plus ``alpha`` times the squares of its rows.

    The square of a row is that of its padded width; where nothing is padded, or attention stays inside each sequence
    of a pack, that of every sequence. Sums of whole numbers are exact, so that every machine finds the same costs.

    Cost: O(B); O(N) where it takes the lengths of single sequences.
    """
    slots = plan.batch_slots.astype(np.float64)
    if alpha == 0:
        return slots
    if plan.policy.spec.layout is Layout.PADDED:
        return slots + alpha * (slots * plan.padded_lengths)
    squares = np.zeros(len(plan))
    low, high = plan.batch_offsets[:-1], plan.batch_offsets[1:]
    for first, stop, at in arrange.spans(low, high):
        sizes = high[first:stop] - low[first:stop]
        kept = kept_at(plan, lengths, at, np.repeat(limits[first:stop], sizes)).kept
        squares[first:stop] = np.add.reduceat(kept.astype(np.float64) ** 2, np.cumsum(sizes) - sizes)
    return slots + alpha * squares
