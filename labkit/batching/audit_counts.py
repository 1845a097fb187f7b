"""What an audit counts: how often each sequence is in a plan, and what is in each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.groups import Groups, resolve_groups
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Batching
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import CHUNK

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


@dataclass(frozen=True, eq=False, slots=True)
class Rules:
    """What a policy says of each sequence, apart from any plan.

    Attributes:
        policy: the policy.
        lengths: (N,) lengths.
        groups: its buckets (or only group); None for strategies filled by events or packs.
        bucket: (N,) small integers, bucket of each sequence, K: dropped; None without groups.
        allowed: (N,) in the dtype of the lengths, most events that a plan may keep of each sequence.
    """

    policy: BatchPolicy
    lengths: NDArray[np.integer]
    groups: Groups | None
    bucket: NDArray[np.integer] | None
    allowed: NDArray[np.integer]

    @classmethod
    def of(cls, policy: BatchPolicy, lengths: NDArray[np.integer]) -> Self:
        """The rules of a policy on these lengths."""
        if policy.spec.batching in (Batching.EVENT_BUDGET, Batching.PACKS):
            cap = np.iinfo(lengths.dtype).max if policy.max_length is None else policy.max_length
            fits = cap >= int(lengths.max())
            return cls(policy, lengths, None, None, lengths if fits else np.minimum(lengths, lengths.dtype.type(cap)))
        groups = resolve_groups(policy, LengthHistogram.from_lengths(lengths))
        many = groups.edges.size
        bucket: NDArray[np.integer] = np.empty(lengths.size, dtype=np.uint8 if many < 2**8 else np.int32)
        allowed, limits = np.empty_like(lengths), np.append(groups.limits, 0)
        for start in range(0, lengths.size, CHUNK):
            part = slice(start, start + CHUNK)
            own = groups.of_lengths(lengths[part])
            bucket[part] = own
            allowed[part] = np.minimum(lengths[part], limits[own])
        return cls(policy, lengths, groups, bucket, allowed)


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """How often each sequence is in some plans.

    Attributes:
        places: (N,) int64, places in batches: pieces, where sequences are split.
        again: (N,) int64, of them those whose events are in a batch already; None: all but the first.
        kept: (N,) int64, events in batches, each counted once; None: what the rules allow, once it is in a batch.
        kept_again: (N,) int64, events that are in a batch already; None: what the rules allow, as often.
        strays: indices that do not exist.
        overlaps: sequence of each piece that begins inside the one before it.
    """

    places: NDArray[np.int64]
    again: NDArray[np.int64] | None
    kept: NDArray[np.int64] | None
    kept_again: NDArray[np.int64] | None
    strays: int
    overlaps: NDArray[np.int64] | None = None

    def part(
        self, rules: Rules, part: slice
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Places, again, kept and kept_again of some sequences."""
        places = self.places[part]
        if self.again is not None and self.kept is not None and self.kept_again is not None:
            return places, self.again[part], self.kept[part], self.kept_again[part]
        allowed, again = rules.allowed[part].astype(np.int64), np.maximum(places - 1, 0)
        return places, again, np.where(places > 0, allowed, 0), again * allowed


def seen(plans: list[EpochPlan], rules: Rules) -> Seen:
    """Count the places of every sequence. Cost: O(N + n), and a sort of the pieces where there are any."""
    n, strays = rules.lengths.size, 0
    places = np.zeros(n, dtype=np.int64)
    for plan in plans:
        order = plan.order
        if order.size and not 0 <= int(order.min()) <= int(order.max()) < n:
            order = order[(order >= 0) & (order < n)]
        strays += plan.order.size - order.size
        places += np.bincount(order, minlength=n)
    if plans[0].event_start is not None:
        return _seen_pieces(plans, places, strays)
    return Seen(places, None, None, None, strays)


def _seen_pieces(plans: list[EpochPlan], places: NDArray[np.int64], strays: int) -> Seen:
    order = np.concatenate([plan.order for plan in plans])
    start = np.concatenate([plan.event_start for plan in plans if plan.event_start is not None])
    events = np.concatenate([plan.event_stop for plan in plans if plan.event_stop is not None]) - start
    turn = np.lexsort((start, order))
    turn = turn[(order[turn] >= 0) & (order[turn] < places.size)]
    order, start, events = order[turn], start[turn], events[turn]
    repeated = np.zeros(order.size, dtype=bool)
    repeated[1:] = (order[1:] == order[:-1]) & (start[1:] == start[:-1])
    inside = (order[1:] == order[:-1]) & ~repeated[1:] & (start[1:] < start[:-1] + events[:-1])
    again, kept, kept_again = (np.zeros(places.size, dtype=np.int64) for _ in range(3))
    np.add.at(again, order[repeated], 1)
    np.add.at(kept, order[~repeated], events[~repeated])
    np.add.at(kept_again, order[repeated], events[repeated])
    return Seen(places, again, kept, kept_again, strays, order[1:][inside])


@dataclass(frozen=True, eq=False, slots=True)
class Batches:
    """What is in each batch of some plans, plan after plan, B in all.

    Attributes:
        rows: (B,) rows of its shape.
        widths: (B,) padded width of its shape.
        slots: (B,) slots that the plan says it has.
        sizes: (B,) places of sequences in it.
        events: (B,) events in it.
        longest: (B,) events of its longest row (of a pack: of its longest piece).
        bucket: (B,) bucket of its first sequence, 0 without buckets.
        mixed: (B,) it has sequences of several buckets.
    """

    rows: NDArray[np.int64]
    widths: NDArray[np.int64]
    slots: NDArray[np.int64]
    sizes: NDArray[np.int64]
    events: NDArray[np.int64]
    longest: NDArray[np.int64]
    bucket: NDArray[np.int64]
    mixed: NDArray[np.bool_]

    @classmethod
    def of(cls, plans: list[EpochPlan], rules: Rules) -> Self:
        """Look into every batch. Cost: O(n), chunked."""
        parts = [_batches(plan, rules) for plan in plans]
        found = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        return cls(
            np.concatenate([plan.rows for plan in plans]),
            np.concatenate([plan.padded_lengths for plan in plans]),
            np.concatenate([plan.batch_slots for plan in plans]),
            np.concatenate([np.diff(plan.batch_offsets) for plan in plans]),
            *found,
        )


def _batches(plan: EpochPlan, rules: Rules) -> tuple[NDArray[Any], ...]:
    """Events, longest, bucket and mixed of one plan."""
    events, longest, bucket = (np.zeros(len(plan), dtype=np.int64) for _ in range(3))
    mixed = np.zeros(len(plan), dtype=bool)
    filled = np.flatnonzero(np.diff(plan.batch_offsets) > 0)
    low, high = plan.batch_offsets[filled], plan.batch_offsets[filled + 1]
    for first, stop, at in arrange.spans(low, high):
        sizes = high[first:stop] - low[first:stop]
        starts, own = np.cumsum(sizes) - sizes, filled[first:stop]
        index = np.clip(plan.order[at], 0, rules.lengths.size - 1)
        if plan.event_start is None or plan.event_stop is None:
            kept = rules.allowed[index].astype(np.int64)
        else:
            kept = plan.event_stop[at] - plan.event_start[at]
        events[own] = np.add.reduceat(kept, starts)
        longest[own] = np.maximum.reduceat(kept, starts)
        if rules.bucket is not None:
            buckets = rules.bucket[index]
            bucket[own] = buckets[starts]
            mixed[own] = np.maximum.reduceat(buckets, starts) != np.minimum.reduceat(buckets, starts)
    return events, longest, bucket, mixed
