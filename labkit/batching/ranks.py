"""Ranks: one global plan, dealt to the processes of a training job without a word between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.batch_sums import BatchSums, batch_costs, batch_sums, is_split
from labkit.batching.dealing import NONE, DealTable, Remainder, deal_table, straggler
from labkit.batching.groups import resolve_groups
from labkit.batching.left_out import LeftOut, left_out_sequences
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
    found = _Counts.of(plan, lengths, per_batch.limits, share.rank, table)
    together = _all_ranks(plan, histogram, share, table, found, per_batch.over, costs)
    return _of_rank(plan, lengths, share, table, found, per_batch, together)


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
    over = np.zeros(len(plan), dtype=np.int64) if groups.budget is None else (plan.batch_slots > groups.budget)
    return _PerBatch(bucket, groups.limits[bucket], over.astype(np.int64))


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


@dataclass(frozen=True, eq=False, slots=True)
class _Counts:
    """What is counted of a dealt epoch: the batches of a rank, those repeated on any rank, and those left out."""

    mine: NDArray[np.int64]
    again: NDArray[np.bool_]
    repeated: NDArray[np.int64]
    own: BatchSums
    twice: BatchSums
    out: BatchSums
    left: LeftOut

    @classmethod
    def of(
        cls, plan: EpochPlan, lengths: NDArray[np.integer], limits: NDArray[np.int64], rank: int, table: DealTable
    ) -> Self:
        column = table.batches[:, rank]
        mine, again = column[column != NONE], table.again[column != NONE, rank]
        repeated = table.batches[table.again]
        parts = [mine, repeated, table.left_out]
        sums = batch_sums(plan, lengths, limits, np.concatenate(parts))
        ends = np.cumsum([part.size for part in parts])[:-1]
        own, twice, out = (BatchSums(*part) for part in zip(*(np.split(values, ends) for values in sums), strict=True))
        left = left_out_sequences(plan, lengths, limits, table, out, mine[~again])
        return cls(mine, again, repeated, own, twice, out, left)


def _all_ranks(
    plan: EpochPlan,
    histogram: LengthHistogram,
    share: Share,
    table: DealTable,
    found: _Counts,
    over: NDArray[np.int64],
    costs: NDArray[np.float64],
) -> AllRanks:
    spread = table.spread(costs)
    dealt = table.batches[table.batches != NONE]
    twice, out, left = int(found.twice.kept.sum()), int(found.out.kept.sum()), found.left
    return AllRanks(
        world_size=share.world_size,
        remainder=share.remainder,
        balance=share.balance,
        steps=table.batches.shape[0],
        sequences=histogram.sequences,
        events=histogram.events,
        batches=dealt.size,
        slots=int(plan.batch_slots[dealt].sum()),
        kept_events=plan.kept_events + twice - out,
        events_repeated=twice,
        events_lost=plan.events_lost + out,
        sequences_repeated=int(np.diff(plan.batch_offsets)[found.repeated].sum()),
        sequences_truncated=plan.sequences_truncated - left.no_longer_cut + int(left.cut.sum()),
        sequences_dropped=plan.sequences_dropped + int(left.dropped.sum()),
        batches_over_budget=int(over[dealt].sum()),
        straggler=straggler(spread),
        epoch_straggler=straggler(spread.sum(axis=0, keepdims=True)),
    )


def _of_rank(
    plan: EpochPlan,
    lengths: NDArray[np.integer],
    share: Share,
    table: DealTable,
    found: _Counts,
    per_batch: _PerBatch,
    together: AllRanks,
) -> EpochPlan:
    """The plan of the rank, with figures that add up over the ranks to those of all of them."""
    mine, again, own, out, left = found.mine, found.again, found.own, found.out, found.left
    for_me = table.left_to == share.rank
    lost = int(own.lost[~again].sum() + (out.kept + out.lost)[for_me].sum())
    cut = int(own.cut[~again].sum()) - left.in_mine + int(left.cut[for_me].sum())
    dropped = int(left.dropped[for_me].sum())
    if share.rank == 0:  # what no batch of the whole epoch holds counts here
        lost_outside, cut_outside = _outside(plan, lengths, per_batch.limits)
        lost += lost_outside
        cut += cut_outside + int(out.cut.sum()) + left.in_dealt - left.no_longer_cut
        dropped += plan.sequences_dropped
    return replace(
        _selected(plan, mine),
        rank=share.rank,
        world_size=share.world_size,
        kept_events=int(own.kept.sum()),
        events_repeated=int(own.kept[again].sum()),
        events_lost=lost,
        sequences_repeated=int(np.diff(plan.batch_offsets)[mine[again]].sum()),
        sequences_truncated=cut,
        sequences_dropped=dropped,
        batches_over_budget=int(per_batch.over[mine].sum()),
        dealt=together,
    )


def _outside(plan: EpochPlan, lengths: NDArray[np.integer], limits: NDArray[np.int64]) -> tuple[int, int]:
    """Events lost, and sequences cut, that no batch of the whole epoch accounts for."""
    if not plan.sequences_dropped and not (is_split(plan) and plan.policy.drop_last):
        return 0, 0
    held = batch_sums(plan, lengths, limits, np.arange(len(plan)))
    return plan.events_lost - int(held.lost.sum()), plan.sequences_truncated - int(held.cut.sum())


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
