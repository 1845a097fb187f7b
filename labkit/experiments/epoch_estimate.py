"""The time of an epoch from a part of its batches: kinds of batches, an order that sees all of them early, the error.

plan -> kind of each batch -> order (one of each kind, then in proportion) -> the first n are timed
     -> sum over kinds of (batches of the kind x mean of those timed), and its standard error
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.plan import EpochPlan
from labkit.batching.strategies import Layout
from labkit.units import format_share

#: Shapes that are all kinds of their own; of more, those within half an octave of width and of slots are one kind.
MOST_KINDS = 16
#: Share of the slots of an epoch that must be of kinds that were timed.
LEAST_SEEN = 0.9
WHOLE = "a whole epoch was timed: nothing is estimated"


@dataclass(frozen=True, slots=True)
class EpochEstimate:
    """What an epoch takes.

    Attributes:
        seconds: estimate; None where too little was seen.
        error: its standard error, s; None where nothing is estimated, or no kind was timed twice.
        reason: how it was made; why there is none; None for a whole epoch.
        error_reason: of what error it is; why there is none.
    """

    seconds: float | None
    error: float | None
    reason: str | None
    error_reason: str


def kinds_of(plan: EpochPlan) -> NDArray[np.int64]:
    """(B,) kind of each batch, 0 .. K - 1: batches of a kind take about as long.

    A kind is a (rows, width); where there are many of them, those whose width and slots are within half an octave.
    Without padding the work is that of the events, and the longest row comes second: those within an octave of both.
    """
    if plan.policy.spec.layout is not Layout.PADDED:
        return _within_octaves(plan, 1)
    known, kind = np.unique(np.stack([plan.rows, plan.padded_lengths]), axis=1, return_inverse=True)
    return kind.reshape(-1).astype(np.int64) if known.shape[1] <= MOST_KINDS else _within_octaves(plan, 2)


def _within_octaves(plan: EpochPlan, parts: int) -> NDArray[np.int64]:
    """(B,) kinds that are octaves of slots and width, each in so many parts, counted down from the largest."""
    sizes = np.maximum(np.stack([plan.batch_slots, plan.padded_lengths]), 1)
    octaves = np.floor(parts * np.log2(sizes.max(axis=1, keepdims=True) / sizes))
    return np.unique(octaves, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def timed_order(plan: EpochPlan, seed: int) -> NDArray[np.int64]:
    """(B,) numbers of all batches, so that the first n stand for all of them, whatever n is.

    One of each kind, those with the most slots first, until enough is seen for an estimate; then every kind in
    proportion to its batches. Within a kind the order is random.

    Cost: O(B log B).
    """
    kinds = kinds_of(plan)
    mixed = np.random.default_rng((seed, 4)).permutation(kinds.size)
    by_kind = mixed[np.argsort(kinds[mixed], kind="stable")]
    counts = np.bincount(kinds)
    number = np.arange(kinds.size) - np.repeat(np.cumsum(counts) - counts, counts)
    sorted_kinds = kinds[by_kind]
    slots = _slots_of(plan, kinds)
    early = (number == 0) & _makes_enough(slots)[sorted_kinds]
    turn = np.where(early, -slots[sorted_kinds], (number + 0.5) / counts[sorted_kinds])
    order: NDArray[np.int64] = by_kind[np.lexsort((turn, ~early))]
    return order


def _slots_of(plan: EpochPlan, kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(kinds, weights=plan.batch_slots).astype(np.float64)


def _makes_enough(slots: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(K,) whether a kind is among the largest that together have ``LEAST_SEEN`` of the slots."""
    largest = np.argsort(-slots, kind="stable")
    before = np.cumsum(slots[largest]) - slots[largest]
    found = np.zeros(slots.size, dtype=np.bool_)
    found[largest] = before < LEAST_SEEN * slots.sum()
    return found


def epoch_estimate(
    plan: EpochPlan, timed: NDArray[np.int64], step_s: NDArray[np.float64], wall_s: float
) -> EpochEstimate:
    """The time of the whole epoch.

    Each kind counts with the mean of its steps. What steps alone do not have, such as the wait for a loader, is a
    factor: wall time over the sum of the steps. Kinds that were not seen count by their slots, as the seen one next in
    width does, with all of it as error.

    Args:
        plan: the epoch.
        timed: (n,) numbers of the batches that were timed, each once.
        step_s: (n,) what they took.
        wall_s: what all of them took together.
    """
    if timed.size == len(plan):
        return EpochEstimate(wall_s, None, None, WHOLE)
    kinds = kinds_of(plan)
    counts = np.bincount(kinds)
    slots = _slots_of(plan, kinds)
    seen = np.bincount(kinds[timed], minlength=counts.size)
    share = float(slots[seen > 0].sum() / slots.sum()) if slots.sum() else 1.0
    what = f"{timed.size} of {len(plan)} batches, {np.count_nonzero(seen)} of {counts.size} shapes"
    if share < LEAST_SEEN or not step_s.sum():
        why = f"only {what} were timed, {format_share(share)} of the slots: give more seconds, or measure a whole epoch"
        return EpochEstimate(None, None, why, why)
    factor = wall_s / float(step_s.sum())
    mean = np.bincount(kinds[timed], weights=step_s, minlength=counts.size) / np.maximum(seen, 1)
    widths = np.bincount(kinds, weights=plan.padded_lengths) / counts
    unseen = _unseen(counts * mean, slots, widths, seen)
    seconds = factor * float((counts * mean).sum() + unseen)
    reason = f"extrapolated from {what}: the mean step of each shape times its batches"
    spread = _spread(kinds[timed], step_s, mean, seen)
    if spread is None:
        return EpochEstimate(seconds, None, reason, "no shape was timed twice: nothing says how much its steps differ")
    left = counts * (counts - seen) * spread**2 / np.maximum(seen, 1)
    error = factor * math.sqrt(float(left.sum()) + unseen**2)
    return EpochEstimate(seconds, error, reason, "standard error of choosing some batches, by the spread in each shape")


def whole_epochs(sums_s: NDArray[np.float64], factor: float) -> EpochEstimate:
    """The time of an epoch from whole ones: their mean.

    Args:
        sums_s: (E,) steps of each epoch together, E >= 1.
        factor: wall time over the sum of the steps.
    """
    n, seconds = sums_s.size, factor * float(sums_s.mean())
    if n == 1:
        return EpochEstimate(seconds, None, None, WHOLE)
    error = factor * float(sums_s.std(ddof=1)) / math.sqrt(n)
    reason = f"mean of {n} whole epochs, the same batches in a new order each time"
    return EpochEstimate(seconds, error, reason, f"standard error of the mean of {n} epochs")


def estimate_of(
    plan: EpochPlan,
    order: NDArray[np.int64],
    step_s: NDArray[np.float64],
    wall_s: float,
    is_slow: NDArray[np.bool_] | None = None,
) -> EpochEstimate:
    """The time of an epoch from the steps of a part of it, a whole one or several, without those that do not count.

    Whole epochs in which every step counts are averaged; where there is none, those steps of the first one that count
    stand for the others.

    Args:
        plan: the epoch.
        order: (B,) numbers of the batches in the order of the first epoch.
        step_s: (n,) what the steps took; n is at most B, or a multiple of it.
        wall_s: what all of them took together.
        is_slow: (n,) steps that do not count, as something was compiled in them: their time is taken off ``wall_s``.
    """
    counts = np.ones(step_s.size, dtype=np.bool_) if is_slow is None else ~is_slow
    if not (steps := float(step_s[counts].sum())):
        why = "something was compiled in every step that was timed: give more seconds"
        return EpochEstimate(None, None, why, why)
    left = wall_s - float(step_s[~counts].sum())
    clean = np.empty(0)
    if step_s.size % len(plan) == 0:
        by_epoch = step_s.reshape(-1, len(plan))
        clean = by_epoch[counts.reshape(by_epoch.shape).all(axis=1)].sum(axis=1)
    if clean.size:
        return whole_epochs(clean, left / steps)
    first = counts[: len(plan)]
    own = step_s[: len(plan)][first]
    return epoch_estimate(plan, order[: first.size][first], own, left / steps * float(own.sum()))


def _unseen(
    steps: NDArray[np.float64], slots: NDArray[np.float64], widths: NDArray[np.float64], seen: NDArray[np.int64]
) -> float:
    """Step time of all batches of the kinds that were not seen: their slots, at the rate of the next in width.

    Args:
        steps: (K,) steps of all batches of a kind that was seen.
        slots: (K,) of all batches of a kind.
        widths: (K,) mean width.
        seen: (K,) batches that were timed.
    """
    by_slots = np.argsort(-slots, kind="stable")
    known, unknown = by_slots[seen[by_slots] > 0], np.flatnonzero(seen == 0)
    apart = np.abs(np.log2((widths[unknown, None] + 1) / (widths[known] + 1)))
    rate = steps[known] / np.maximum(slots[known], 1)
    return float((slots[unknown] * rate[apart.argmin(axis=1)]).sum())


def _spread(
    kinds: NDArray[np.int64], step_s: NDArray[np.float64], mean: NDArray[np.float64], seen: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """(K,) standard deviation of a step of each kind: the same share of its mean in all, as few are seen often.

    None where no kind was seen twice.
    """
    freedom = int(np.maximum(seen - 1, 0).sum())
    if not freedom:
        return None
    relative = step_s / mean[kinds] - 1
    return mean * math.sqrt(float(np.square(relative).sum()) / freedom)
