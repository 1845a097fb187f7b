"""Packs, what-if and plan: exact scenarios, the account of events, chance, and the checks' own negative controls."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.epoch_plan import EpochPlan
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import WhatIf, what_if
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from tests.batching import pack_checks
from tests.batching.checks import assert_agree
from tests.batching.draws import FEW, LENGTHS, policies

FOUR = [5, 2, 3, 1]


def packed(**fields: object) -> BatchPolicy:
    return BatchPolicy("packed", **fields)


def scored(lengths: list[int], policy: BatchPolicy) -> WhatIf:
    return what_if(LengthHistogram.from_lengths(lengths), policy)


def packs_of(plan: EpochPlan) -> list[list[tuple[int, int, int]]]:
    """(sequence, first event, stop) of each piece, pack by pack."""
    assert plan.pack_offsets is not None
    assert plan.event_start is not None
    assert plan.event_stop is not None
    rows = list(zip(plan.order.tolist(), plan.event_start.tolist(), plan.event_stop.tolist(), strict=True))
    return [rows[low:high] for low, high in pairwise(plan.pack_offsets.tolist())]


@pytest.mark.parametrize(
    ("overflow", "packs", "lost", "padding"),
    [
        # C16: 4 | 3 + 1 | 2, the oldest event of the 5 is lost: 10 of 3 x 4 slots
        ("truncate", [[(0, 1, 5)], [(2, 0, 3), (3, 0, 1)], [(1, 0, 2)]], 1, 2 / 12),
        # 4 | 3 + 1 | 2 + 1: nothing lost, the oldest event of the 5 is a piece of its own
        ("split", [[(0, 1, 5)], [(2, 0, 3), (3, 0, 1)], [(1, 0, 2), (0, 0, 1)]], 0, 1 / 12),
        # 3 + 1 | 2: the 5 is left out whole
        ("drop", [[(2, 0, 3), (3, 0, 1)], [(1, 0, 2)]], 5, 2 / 8),
    ],
)
def test_overflow_keeps_its_account(overflow: str, packs: list[object], lost: int, padding: float) -> None:
    policy = packed(capacity=4, overflow=overflow, shuffle=False)
    plan, found = plan_epoch(FOUR, policy), scored(FOUR, policy)
    assert packs_of(plan) == packs
    assert plan.events_lost == found.events_lost == lost
    assert plan.kept_events + plan.events_lost == 11
    assert plan.padding_ratio == found.padding_ratio == pytest.approx(padding)
    assert found.packs == plan.packs == len(packs)
    assert plan.sequences_dropped == (overflow == "drop")
    assert plan.sequences_truncated == (overflow == "truncate")


def test_a_length_above_the_capacity_is_an_error_with_its_numbers() -> None:
    line = (
        r"^longest length 5 > capacity 2 \(2 of 4 sequences above it{}\): raise capacity to 5 or more, "
        r"set max_length, or choose overflow 'truncate', 'split' or 'drop'\.$"
    )
    with pytest.raises(PolicyError, match=line.format(", the first at index 1")):
        plan_epoch([2, 3, 5, 1], packed(capacity=2))
    with pytest.raises(PolicyError, match=line.format("")):
        scored([2, 3, 5, 1], packed(capacity=2))
    with pytest.raises(PolicyError, match=r"^capacity must be 1 or more: got 0\.$"):
        packed(capacity=0)


def test_the_cap_comes_before_the_capacity() -> None:
    # 11 is capped to its last 9: 2 .. 11, cut from the end into 7 .. 11, 3 .. 7 and the rest 2 .. 3
    plan = plan_epoch([11], packed(capacity=4, max_length=9, overflow="split", shuffle=False))
    assert packs_of(plan) == [[(0, 7, 11)], [(0, 3, 7)], [(0, 2, 3)]]
    assert (plan.events_lost, plan.sequences_truncated) == (2, 1)
    # with a cap at the capacity nothing overflows
    assert plan_epoch([11, 2], packed(capacity=4, max_length=4)).events_lost == 7
    # 9 is still above the capacity
    assert plan_epoch([11, 2], packed(capacity=4, max_length=9, overflow="drop")).events_lost == 11


def test_a_width_is_rounded_up_and_holds_no_more() -> None:
    # capacity 5: 5 | 3 + 2, each in 8 slots, of which 3 stay empty; a 3 more would fit 8 but not 5
    plan = plan_epoch([5, 3, 2, 3], packed(capacity=5, length_multiple=8))
    assert plan.padded_lengths.tolist() == [8]
    assert plan.packs == 3
    assert plan.slots == scored([5, 3, 2, 3], packed(capacity=5, length_multiple=8)).slots == 24


def test_capacity_is_the_longest_after_the_cap_by_default() -> None:
    assert plan_epoch([3, 9, 4], packed()).padded_lengths.tolist() == [9]
    assert plan_epoch([3, 9, 4], packed(max_length=5)).padded_lengths.tolist() == [5]
    assert plan_epoch([0], packed()).padded_lengths.tolist() == [1]


def test_the_last_partial_batch_of_packs() -> None:
    # packs 4 | 4 | 4 | 3: batches of 3 are 3 + 1, two shapes, the largest 12 slots
    found = scored([4, 4, 4, 3], packed(rows=3))
    assert (found.batches, found.shapes, found.largest_batch_slots, found.slots) == (2, 2, 12, 16)
    # one of four packs is left out, at random: 15 events less a quarter of them
    found = scored([4, 4, 4, 3], packed(rows=3, drop_last=True))
    assert (found.batches, found.shapes, found.packs, found.slots) == (1, 1, 3, 12)
    assert (found.kept_events, found.sequences_dropped) == (15 * 3 / 4, 1)
    plan = plan_epoch([4, 4, 4, 3], packed(rows=3, drop_last=True))
    assert plan.kept_events in (11, 12)
    assert plan.sequences_dropped == 1


def test_a_split_sequence_of_which_a_piece_is_left_is_truncated() -> None:
    # pieces 4 | 4 | 1 of one sequence, two packs kept: it is cut, never dropped
    policy = packed(capacity=4, overflow="split", rows=2, drop_last=True)
    plan, found = plan_epoch([9], policy), scored([9], policy)
    assert (plan.sequences_truncated, plan.sequences_dropped) == (1, 0)
    assert plan.events_lost in (1, 4)
    assert (found.sequences_truncated, found.sequences_dropped) == (pytest.approx(1), 0)
    assert found.events_lost == pytest.approx(9 / 3)  # a third of the packs, each as likely


def test_expectations_with_drop_last_are_the_mean_over_shuffles() -> None:
    lengths = [9, 6, 5, 4, 3, 1, 0]
    policy = packed(capacity=4, overflow="split", rows=4, drop_last=True)
    found = scored(lengths, policy)
    plans = [plan_epoch(lengths, policy, epoch=epoch) for epoch in range(3000)]
    for name in ("kept_events", "events_lost", "sequences_truncated", "sequences_dropped"):
        values = np.array([getattr(plan, name) for plan in plans])
        error = values.std() / len(plans) ** 0.5
        assert abs(values.mean() - getattr(found, name)) <= 4 * error, name


def test_figures_of_the_packing() -> None:
    # packs 4 | 3 + 1: sums of squares 16 and 10, mean 13; shares of the largest user 1 and 3/4
    figures = scored([4, 3, 1], packed()).packing
    assert figures is not None
    assert (figures.pieces, figures.lower_bound, figures.gap) == (3, 2, 0)
    assert figures.balance == 16 / 13
    assert (figures.largest_user_share_mean, figures.largest_user_share_max) == (7 / 8, 1)
    # 15 events would fit 2 packs of 8, but 5 sequences of at most 2 a pack need 3
    figures = scored([4, 4, 3, 2, 2], packed(capacity=8, max_sequences_per_pack=2)).packing
    assert figures is not None
    assert (figures.lower_bound, figures.gap) == (3, 0)
    figures = scored([0, 0], packed()).packing
    assert figures is not None
    assert (figures.balance, figures.largest_user_share_mean, figures.gap) == (0, 0, 0)
    assert scored([1], BatchPolicy("pad_max")).packing is None


@settings(max_examples=200)
@given(st.data(), LENGTHS | FEW)
def test_packs_do_not_depend_on_the_order_of_the_lengths(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths, ("packed",)))
    permuted = data.draw(st.permutations(lengths))
    plans = [plan_epoch(lengths, policy), plan_epoch(permuted, policy, seed=5)]
    assert plans[0].packs == plans[1].packs
    found = scored(lengths, policy)
    assert_agree(found, plans[1])
    assert found.packing is not None
    assert policy.drop_last or (found.packs or 0) >= found.packing.lower_bound


def test_partners_change_with_the_epoch_and_repeat_with_the_seed() -> None:
    lengths = np.random.default_rng(0).integers(1, 9, 400)
    policy = packed(capacity=8)
    plans = [plan_epoch(lengths, policy, seed=1, epoch=epoch) for epoch in (0, 0, 1)]
    assert packs_of(plans[0]) == packs_of(plans[1])
    partners = [{frozenset(index for index, _, _ in pack) for pack in packs_of(plan)} for plan in plans]
    assert len(partners[0] & partners[2]) < len(partners[0]) / 2


def test_an_epoch_with_everything_dropped_has_no_packs() -> None:
    policy = packed(capacity=2, overflow="drop")
    plan, found = plan_epoch([5, 7], policy), scored([5, 7], policy)
    assert_agree(found, plan)
    assert (plan.packs, len(plan), plan.events_lost, plan.sequences_dropped) == (0, 0, 12, 2)


def test_lengths_far_apart_and_wide() -> None:
    # more than 2**16 distinct lengths, one of them 2**31 - 1
    lengths = np.append(np.arange(70_000), 2**31 - 1)
    policy = packed(max_sequences_per_pack=3)
    plan = plan_epoch(lengths, policy)
    assert_agree(what_if(LengthHistogram.from_lengths(lengths), policy), plan)
    assert np.sort(plan.order).tolist() == list(range(70_001))


def test_splitting_for_ever_is_no_more_than_the_events() -> None:
    plan = plan_epoch([1000, 3], packed(capacity=1, overflow="split", rows=1000))
    assert (plan.packs, plan.kept_events, len(plan)) == (1003, 1003, 2)


def wrong(plan: EpochPlan, name: str, change: object) -> EpochPlan:
    array = getattr(plan, name).copy()
    change(array)  # type: ignore[operator]
    return replace(plan, **{name: array})


@pytest.mark.parametrize(
    ("check", "name", "change"),
    [
        ("assert_pieces_once", "order", lambda a: a.__setitem__(0, a[-1])),
        ("assert_pieces_once", "event_start", lambda a: a.__setitem__(slice(None), a + 1)),
        ("assert_packs_hold_their_pieces", "event_stop", lambda a: a.__setitem__(0, 99)),
        ("assert_packs_hold_their_pieces", "padded_lengths", lambda a: a.__setitem__(0, 5)),
        ("assert_packs_hold_their_pieces", "pack_offsets", lambda a: a.__setitem__(1, a[2])),
        ("assert_offsets_fit", "pack_offsets", lambda a: a.__setitem__(1, 0)),
        ("assert_offsets_fit", "rows", lambda a: a.__setitem__(0, 1)),
        ("assert_losses_are_counted", "event_stop", lambda a: a.__setitem__(0, a[0] - 1)),
    ],
)
def test_the_checks_can_fail(check: str, name: str, change: object) -> None:
    lengths = [5, 2, 3, 1]
    plan = plan_epoch(lengths, packed(capacity=4, overflow="split", rows=2))
    pack_checks.assert_sound_packs(plan, lengths)
    with pytest.raises(AssertionError):
        getattr(pack_checks, check)(wrong(plan, name, change), lengths)
