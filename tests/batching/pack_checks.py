"""Checks of a packed plan that know only the rules; each has a negative control in test_pack_plan.py."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from labkit.batching.epoch_plan import EpochPlan
from labkit.batching.policy import Overflow
from tests.batching import naive

Span = tuple[int, int]


def assert_sound_packs(plan: EpochPlan, lengths: list[int]) -> None:
    """Everything that must hold of any packed plan of these lengths."""
    assert_offsets_fit(plan, lengths)
    assert_pieces_once(plan, lengths)
    assert_packs_hold_their_pieces(plan, lengths)
    assert_losses_are_counted(plan, lengths)


def capacity_of(plan: EpochPlan, lengths: list[int]) -> int:
    cap = plan.policy.max_length
    return plan.policy.capacity or max(1, min(max(lengths), cap or max(lengths)))


def pieces_by_rule(length: int, plan: EpochPlan, lengths: list[int]) -> list[Span]:
    """The pieces of one sequence, newest first: the cap, then the overflow; the oldest one may be short."""
    cap, capacity = plan.policy.max_length, capacity_of(plan, lengths)
    first = length - min(length, cap or length)
    if length - first <= capacity:
        return [(first, length)]
    match plan.policy.overflow:
        case Overflow.DROP:
            return []
        case Overflow.TRUNCATE:
            return [(length - capacity, length)]
        case Overflow.SPLIT:
            return [(max(first, stop - capacity), stop) for stop in range(length, first, -capacity)]
    raise AssertionError("such a length should have been refused")


def spans(plan: EpochPlan) -> dict[int, list[Span]]:
    """The pieces of each sequence in the plan, newest first."""
    assert plan.event_start is not None
    assert plan.event_stop is not None
    found: dict[int, list[Span]] = defaultdict(list)
    for index, start, stop in zip(
        plan.order.tolist(), plan.event_start.tolist(), plan.event_stop.tolist(), strict=True
    ):
        found[index].append((start, stop))
    return {index: sorted(pieces, reverse=True) for index, pieces in found.items()}


def assert_offsets_fit(plan: EpochPlan, lengths: list[int]) -> None:
    """Packs follow one another without a gap, and so do batches of them: all of ``rows`` packs but the last."""
    assert set(plan.order.tolist()) <= set(range(len(lengths)))
    assert plan.pack_offsets is not None
    assert plan.pack_offsets[0] == plan.batch_offsets[0] == 0
    assert plan.pack_offsets[-1] == plan.batch_offsets[-1] == plan.order.size
    assert (np.diff(plan.pack_offsets) > 0).all(), "a pack is empty"
    ends = plan.pack_offsets[np.cumsum(plan.rows)]
    assert ends.tolist() == plan.batch_offsets[1:].tolist(), "a batch does not end with a pack"
    assert (plan.rows[:-1] == plan.policy.rows).all()
    assert (plan.rows > 0).all()
    assert (plan.rows <= plan.policy.rows).all()
    assert plan.packs == plan.rows.sum()
    if plan.policy.drop_last:
        assert (plan.rows == plan.policy.rows).all()
    width = plan.padded_lengths
    assert plan.batch_slots.tolist() == (plan.rows * width).tolist()


def assert_pieces_once(plan: EpochPlan, lengths: list[int]) -> None:
    """Every piece of every sequence once; without drop_last all of them."""
    found = spans(plan)
    for index, length in enumerate(lengths):
        wanted, own = pieces_by_rule(length, plan, lengths), found.pop(index, [])
        assert len(set(own)) == len(own), f"a piece of sequence {index} is there twice"
        assert set(own) <= set(wanted), f"a piece of sequence {index} is cut wrongly"
        if not plan.policy.drop_last:
            assert own == wanted, f"a piece of sequence {index} is missing"
    assert not found, "an index does not exist"


def assert_packs_hold_their_pieces(plan: EpochPlan, lengths: list[int]) -> None:
    """No pack is over the capacity or its number of sequences; widths are the capacity rounded up."""
    assert plan.pack_offsets is not None
    assert plan.event_start is not None
    assert plan.event_stop is not None
    capacity, most = capacity_of(plan, lengths), plan.policy.max_sequences_per_pack
    kept = plan.event_stop - plan.event_start
    for low, high in pairwise(plan.pack_offsets.tolist()):
        assert kept[low:high].sum() <= capacity
        assert high - low <= (most or high)
        assert len(set(plan.order[low:high].tolist())) == high - low, "a sequence is in one pack twice"
    assert (plan.padded_lengths == naive.up(capacity, plan.policy.length_multiple)).all()


def assert_losses_are_counted(plan: EpochPlan, lengths: list[int]) -> None:
    """Kept and lost are all events; who loses some is truncated, who is in no pack is dropped."""
    found = spans(plan)
    kept = {index: sum(stop - start for start, stop in pieces) for index, pieces in found.items()}
    assert plan.kept_events == sum(kept.values())
    assert plan.kept_events + plan.events_lost == sum(lengths)
    assert plan.sequences_dropped == len(lengths) - len(kept)
    assert plan.sequences_truncated == sum(kept[index] < lengths[index] for index in kept)
    assert plan.slots >= plan.kept_events
    assert plan.ghost_rows == plan.batches_over_budget == 0
