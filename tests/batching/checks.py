"""Checks of a plan that know only the rules, not the code; each has a negative control in test_checks.py."""

from __future__ import annotations

import numpy as np

from labkit.batching.plan import EpochPlan
from labkit.batching.policy import BatchPolicy, PadTo
from labkit.batching.strategies import Batching, Layout
from labkit.batching.what_if import FIGURES, WhatIf
from labkit.provenance import Origin
from tests.batching import naive
from tests.batching.pack_checks import assert_sound_packs


def assert_sound(plan: EpochPlan, lengths: list[int]) -> None:
    """Everything that must hold of any plan of these lengths."""
    if plan.policy.spec.batching is Batching.PACKS:
        assert_sound_packs(plan, lengths)
        return
    assert_each_index_at_most_once(plan, len(lengths))
    assert_events_add_up(plan, lengths)
    assert_within_budget(plan, lengths)
    assert_rows_fit_their_batch(plan, lengths)


def assert_each_index_at_most_once(plan: EpochPlan, sequences: int) -> None:
    """Every index once, but for those counted as dropped; batches follow one another without a gap."""
    assert plan.order.dtype == np.int64
    order = plan.order.tolist()
    assert len(set(order)) == len(order), "an index is in two batches"
    assert set(order) <= set(range(sequences)), "an index does not exist"
    assert len(order) + plan.sequences_dropped == sequences, "sequences are lost without being counted"
    assert plan.batch_offsets[0] == 0
    assert plan.batch_offsets[-1] == len(order)
    sizes = np.diff(plan.batch_offsets)
    assert (sizes > 0).all(), "a batch is empty"
    assert len(plan) == sizes.size == plan.rows.size == plan.padded_lengths.size == plan.batch_slots.size
    assert [index for batch in plan for index in batch.tolist()] == order


def kept_of(index: int, plan: EpochPlan, lengths: list[int]) -> int:
    """Events kept of one sequence that is in the plan, by the rules."""
    if plan.policy.spec.batching is Batching.EVENT_BUDGET:
        cap = plan.policy.max_length
        return lengths[index] if cap is None else min(cap, lengths[index])
    found = naive.place(lengths[index], plan.policy, lengths)
    assert found is not None, f"sequence {index} should have been dropped"
    return found.kept


def assert_events_add_up(plan: EpochPlan, lengths: list[int]) -> None:
    """Kept and lost are all events; both are what the rules give for the sequences in the plan."""
    kept = [kept_of(i, plan, lengths) for i in plan.order.tolist()]
    assert plan.kept_events == sum(kept)
    assert plan.kept_events + plan.events_lost == sum(lengths)
    cut = sum(k < lengths[i] for k, i in zip(kept, plan.order.tolist(), strict=True))
    assert plan.sequences_truncated == cut
    assert plan.slots >= plan.kept_events


def assert_within_budget(plan: EpochPlan, lengths: list[int]) -> None:
    """Rows x width within the token budget, but for single rows that are counted; jagged: events and rows."""
    policy = plan.policy
    if policy.spec.batching is Batching.EVENT_BUDGET:
        for batch in plan:
            assert sum(kept_of(i, plan, lengths) for i in batch.tolist()) <= policy.token_budget
            assert batch.size <= policy.max_rows
        return
    if "token_budget" not in policy.spec.fields:
        assert (plan.rows <= policy.rows).all()
        assert plan.batches_over_budget == 0
        return
    widths = plan.padded_lengths
    over = plan.rows * widths > policy.token_budget
    assert int(over.sum()) == plan.batches_over_budget
    assert (plan.rows[over] == 1).all(), "a batch of more than one row is over the budget"
    assert policy.oversize == "single_row" or not over.any()


def assert_rows_fit_their_batch(plan: EpochPlan, lengths: list[int]) -> None:
    """Every kept row fits the width of its batch; widths are those of the bucket or of the longest row."""
    policy, jagged = plan.policy, plan.policy.spec.layout is not Layout.PADDED
    to_longest = policy.strategy == "pad_batch" or ("pad_to" in policy.spec.fields and policy.pad_to is PadTo.BATCH_MAX)
    for i, batch in enumerate(plan):
        kept = [kept_of(index, plan, lengths) for index in batch.tolist()]
        assert plan.padded_lengths[i] >= max(kept)
        assert plan.rows[i] >= len(kept)
        if jagged:
            # rows of fixed number are at least 1 wide, as everywhere; those filled by events may have none
            least = 0 if policy.spec.batching is Batching.EVENT_BUDGET else 1
            assert plan.padded_lengths[i] == max(least, *kept)
            assert plan.batch_slots[i] == sum(kept)
            continue
        assert plan.batch_slots[i] == plan.rows[i] * plan.padded_lengths[i]
        places = [naive.place(lengths[index], policy, lengths) for index in batch.tolist()]
        assert len({p.bucket for p in places if p is not None}) == 1, "two buckets in one batch"
        first = places[0]
        assert first is not None
        wanted = naive.up(max(kept), policy.length_multiple) if to_longest else first.width
        assert plan.padded_lengths[i] == wanted


def exact_fields(scored: WhatIf) -> list[str]:
    """Figures that promise equality with a plan: exact, and not as an expectation."""
    return [name for name in FIGURES if scored.provenance[name] is Origin.EXACT and name not in scored.reason]


def assert_agree(scored: WhatIf, plan: EpochPlan) -> None:
    """The what-if equals the plan to the last digit in all that it calls exact."""
    names = exact_fields(scored)
    assert {n: getattr(scored, n) for n in names} == {n: getattr(plan, n) for n in names}
    assert scored.packs == plan.packs


def shapes_of(plan: EpochPlan) -> list[tuple[int, int]]:
    """The multiset of (rows, width) of an epoch, sorted."""
    return sorted(zip(plan.rows.tolist(), plan.padded_lengths.tolist(), strict=True))


def used(policy: BatchPolicy, field: str) -> bool:
    return field in policy.spec.fields
