"""Checks of the plans of all ranks that know only the rules; each has a negative control in test_ranks.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy, PadTo
from labkit.batching.strategies import Batching

#: Figures that add up over the ranks to those of all of them.
SUMS = (
    "batches",
    "slots",
    "kept_events",
    "events_repeated",
    "events_lost",
    "sequences_repeated",
    "sequences_truncated",
    "sequences_dropped",
    "batches_over_budget",
)

Piece = tuple[int, int, int]


def plans_of(lengths: Sequence[int], policy: BatchPolicy, world_size: int, **options: object) -> list[EpochPlan]:
    """The plan of every rank."""
    return [plan_epoch(lengths, policy, rank=r, world_size=world_size, **options) for r in range(world_size)]


def pieces(plan: EpochPlan) -> list[tuple[Piece, ...]]:
    """Each batch as (index, first event, last event + 1); -1 where the sequence is not in pieces."""
    none = np.full(plan.order.size, -1)
    start = none if plan.event_start is None else plan.event_start
    stop = none if plan.event_stop is None else plan.event_stop
    flat = list(zip(plan.order.tolist(), start.tolist(), stop.tolist(), strict=True))
    bounds = plan.batch_offsets.tolist()
    return [tuple(flat[a:b]) for a, b in pairwise(bounds)]


def assert_union_is_the_epoch(plans: Sequence[EpochPlan], whole: EpochPlan, remainder: str) -> None:
    """The ranks' batches are those of the plan for one process: all of them, but for repeated or dropped ones."""
    dealt = Counter(batch for plan in plans for batch in pieces(plan))
    wanted = Counter(pieces(whole))
    missing, extra = wanted - dealt, dealt - wanted
    assert set(dealt) <= set(wanted), "a batch that is in no plan"
    assert not missing or remainder == "drop", "a batch that no rank has"
    assert not extra or remainder == "repeat", "a batch twice"
    assert sum(len(b) * n for b, n in extra.items()) == plans[0].all_ranks.sequences_repeated


def assert_steps_are_equal(plans: Sequence[EpochPlan], remainder: str) -> None:
    """As many batches on every rank; of one width (and static rows) at every step in bucket strategies."""
    policy = plans[0].policy
    many = {len(plan) for plan in plans}
    if remainder == "uneven":
        assert max(many) - min(many) <= 1, "two batches more than another rank"
        return
    assert len(many) == 1, "ranks of different numbers of steps"
    if policy.spec.batching is not Batching.BUCKETS or policy.pad_to is PadTo.BATCH_MAX:
        return
    widths = np.stack([plan.padded_lengths for plan in plans])
    assert (widths == widths[0]).all(), "widths differ in a step"
    if policy.has_static_shapes:
        rows = np.stack([plan.rows for plan in plans])
        assert (rows == rows[0]).all(), "rows differ in a step"


def assert_figures_add_up(plans: Sequence[EpochPlan], whole: EpochPlan, lengths: Sequence[int]) -> None:
    """Events in + repeated = out + lost; the ranks' figures are parts of those that all of them know."""
    together = plans[0].all_ranks
    assert all(plan.all_ranks == together for plan in plans)
    assert {name: sum(getattr(plan, name) for plan in plans) for name in SUMS} == {
        name: getattr(together, name) for name in SUMS
    }
    assert (together.events, together.sequences) == (sum(lengths), len(lengths))
    assert together.events + together.events_repeated == together.kept_events + together.events_lost
    assert together.steps == max(len(plan) for plan in plans)
    seen = {index for plan in plans for index in plan.order.tolist()}
    assert len(seen) + together.sequences_dropped == len(lengths)
    assert sum(plan.order.size for plan in plans) <= whole.order.size + together.sequences_repeated
    assert together.straggler >= 1 - 1e-12
    assert together.epoch_straggler >= 1 - 1e-12


def assert_truncated_are_counted_once(plans: Sequence[EpochPlan], lengths: Sequence[int]) -> None:
    """Users cut: those in some batch of whom not every event is in one."""
    got: dict[int, set[Piece]] = {}
    whole_kept: dict[int, int] = {}
    for plan in plans:
        for batch in pieces(plan):
            for index, start, stop in batch:
                got.setdefault(index, set()).add((index, start, stop))
    if plans[0].event_start is None:
        return
    for index, parts in got.items():
        whole_kept[index] = sum(stop - start for _, start, stop in parts)
    cut = sum(kept < lengths[index] for index, kept in whole_kept.items())
    assert plans[0].all_ranks.sequences_truncated == cut


def assert_dealt(plans: Sequence[EpochPlan], whole: EpochPlan, lengths: Sequence[int], remainder: str) -> None:
    """Everything that must hold of the plans of all ranks."""
    assert_union_is_the_epoch(plans, whole, remainder)
    assert_steps_are_equal(plans, remainder)
    assert_figures_add_up(plans, whole, lengths)
    assert_truncated_are_counted_once(plans, lengths)
