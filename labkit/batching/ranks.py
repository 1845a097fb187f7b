"""Ranks: one global plan, dealt to the processes of a training job without a word between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.batch_sums import BatchSums, batch_costs, batch_sums
from labkit.batching.dealing import NONE, DealTable, Remainder, deal_table, straggler
from labkit.batching.groups import resolve_groups
from labkit.batching.left_out import left_out_sequences
from labkit.batching.policy import BatchOrder, BatchPolicy, Overflow
from labkit.batching.share import AllRanks, Balance, Share
from labkit.batching.strategies import Batching
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


class _PerBatch(NamedTuple):
    """(B,) arrays: bucket, most events kept of a sequence, and whether it is over the token budget."""

    bucket: NDArray[np.int64]
    limits: NDArray[np.int64]
    over: NDArray[np.int64]


def deal(
    plan: EpochPlan,
    lengths: NDArray[np.integer],
    histogram: LengthHistogram,
    share: Share,
    rng: np.random.Generator,
) -> EpochPlan:
    """The plan of one rank.

    Args:
        plan: of the whole epoch.
        lengths: (N,) lengths that it was made of.
        histogram: of them.
        share: which rank of how many.
        rng: in the same state on every rank; shuffles the steps of bucket strategies.

    Raises:
        PolicyError: ``remainder='drop'`` leaves every rank without a batch.

    Cost: O(B log B) for all batches, O(n) for the n sequences of the rank.
    """
    per_batch = _per_batch(plan, lengths, histogram)
    alpha = share.alpha if share.balance is Balance.QUADRATIC else 0.0
    costs = batch_costs(plan, lengths, per_batch.limits, alpha)
    table = deal_table(
        per_batch.bucket,
        share.world_size,
        share.remainder,
        costs=None if share.balance is Balance.NONE else costs,
        rng=rng if _shuffles_batches(plan.policy) else None,
    )
    if share.remainder is Remainder.DROP and not table.batches.size:
        raise PolicyError(_too_few(per_batch.bucket, share.world_size))
    return _own_plan(plan, lengths, histogram, share, per_batch, table, costs)


def _per_batch(plan: EpochPlan, lengths: NDArray[np.integer], histogram: LengthHistogram) -> _PerBatch:
    policy = plan.policy
    if policy.spec.batching in (Batching.EVENT_BUDGET, Batching.PACKS):
        caps = [MAX_LENGTH if policy.max_length is None else policy.max_length]
        if policy.spec.batching is Batching.PACKS and policy.overflow is not Overflow.SPLIT and policy.capacity:
            caps.append(policy.capacity)
        none = np.zeros(len(plan), dtype=np.int64)
        return _PerBatch(none, np.full(len(plan), min(caps)), none)
    groups = resolve_groups(policy, histogram)
    bucket = groups.of_lengths(lengths[plan.order[plan.batch_offsets[:-1]]])
    return _PerBatch(bucket, groups.limits[bucket], groups.over_budget[bucket].astype(np.int64))


def _shuffles_batches(policy: BatchPolicy) -> bool:
    in_buckets = policy.spec.batching is Batching.BUCKETS
    return in_buckets and policy.shuffle and policy.batch_order is BatchOrder.SHUFFLED


def _too_few(bucket: NDArray[np.int64], world_size: int) -> str:
    most = int(np.bincount(bucket).max()) if bucket.size else 0
    of = f" (at most {most} in a bucket)" if most < bucket.size else ""
    return (
        f"{bucket.size} batches{of} are too few for {world_size} ranks: remainder 'drop' leaves every rank without a "
        "batch. Use fewer ranks, smaller batches, or remainder 'repeat'."
    )


def _own_plan(
    plan: EpochPlan,
    lengths: NDArray[np.integer],
    histogram: LengthHistogram,
    share: Share,
    per_batch: _PerBatch,
    table: DealTable,
    costs: NDArray[np.float64],
) -> EpochPlan:
    column, again = table.batches[:, share.rank], table.again[:, share.rank]
    mine, again = column[column != NONE], again[column != NONE]
    repeated = table.batches[table.again]
    parts = [mine, repeated, table.left_out]
    sums = batch_sums(plan, lengths, per_batch.limits, np.concatenate(parts))
    own, twice, out = (BatchSums(*part) for part in _split(sums, parts))
    left = left_out_sequences(plan, lengths, per_batch.limits, table, out, mine[~again])
    for_me = table.left_to == share.rank
    sizes = np.diff(plan.batch_offsets)
    spread = table.spread(costs)
    dealt = table.batches[table.batches != NONE]
    all_ranks = AllRanks(
        world_size=share.world_size,
        remainder=share.remainder,
        balance=share.balance,
        steps=table.batches.shape[0],
        sequences=histogram.sequences,
        events=histogram.events,
        batches=dealt.size,
        slots=int(plan.batch_slots[dealt].sum()),
        kept_events=plan.kept_events + int(twice.kept.sum()) - int(out.kept.sum()),
        events_repeated=int(twice.kept.sum()),
        events_lost=plan.events_lost + int(out.kept.sum()),
        sequences_repeated=int(sizes[repeated].sum()),
        sequences_truncated=plan.sequences_truncated - left.no_longer_cut + int(left.cut.sum()),
        sequences_dropped=plan.sequences_dropped + int(left.dropped.sum()),
        batches_over_budget=int(per_batch.over[dealt].sum()),
        straggler=straggler(spread),
        epoch_straggler=straggler(spread.sum(axis=0, keepdims=True)),
    )
    first = share.rank == 0  # what no batch holds counts there
    lost = int(own.lost[~again].sum() + (out.kept + out.lost)[for_me].sum())
    return replace(
        _selected(plan, mine),
        rank=share.rank,
        world_size=share.world_size,
        kept_events=int(own.kept.sum()),
        events_repeated=int(own.kept[again].sum()),
        events_lost=lost + (_lost_outside(plan, lengths, per_batch.limits) if first else 0),
        sequences_repeated=int(sizes[mine[again]].sum()),
        sequences_truncated=int(own.cut[~again].sum()) - left.mine_no_longer_cut + int(left.cut[for_me].sum()),
        sequences_dropped=int(left.dropped[for_me].sum()) + (plan.sequences_dropped if first else 0),
        batches_over_budget=int(per_batch.over[mine].sum()),
        dealt=all_ranks,
    )


def _split(sums: BatchSums, parts: Sequence[NDArray[np.int64]]) -> list[list[NDArray[np.int64]]]:
    """The sums of each part of the concatenated batches."""
    ends = np.cumsum([part.size for part in parts])[:-1]
    return [list(part) for part in zip(*(np.split(values, ends) for values in sums), strict=True)]


def _lost_outside(plan: EpochPlan, lengths: NDArray[np.integer], limits: NDArray[np.int64]) -> int:
    """Events of sequences that are in no batch of the whole epoch."""
    if not plan.sequences_dropped:
        return 0
    return plan.events_lost - int(batch_sums(plan, lengths, limits, np.arange(len(plan))).lost.sum())


def _selected(plan: EpochPlan, batches: NDArray[np.int64]) -> EpochPlan:
    """The plan of some batches, in that order; its figures are still those of the whole."""
    low, high = plan.batch_offsets[batches], plan.batch_offsets[batches + 1]
    packs: dict[str, Any] = {}
    if plan.pack_offsets is not None and plan.event_start is not None and plan.event_stop is not None:
        at = np.searchsorted(plan.pack_offsets, plan.batch_offsets)  # the pack that each batch begins with
        sizes = arrange.gather(np.diff(plan.pack_offsets), at[batches], at[batches + 1])
        packs = {
            "pack_offsets": np.concatenate(([0], np.cumsum(sizes))),
            "event_start": arrange.gather(plan.event_start, low, high),
            "event_stop": arrange.gather(plan.event_stop, low, high),
        }
    return replace(
        plan,
        order=arrange.gather(plan.order, low, high),
        batch_offsets=np.concatenate(([0], np.cumsum(high - low))),
        padded_lengths=plan.padded_lengths[batches],
        rows=plan.rows[batches],
        batch_slots=plan.batch_slots[batches],
        **packs,
    )
