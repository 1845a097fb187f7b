"""what_if: small cases by hand, both sides of every loss, and exact expectations against the mean over all shuffles."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import FIGURES, WhatIf, what_if
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin
from tests.batching.draws import FEW, LENGTHS, policies


def scored(lengths: list[int], strategy: str, **fields: object) -> WhatIf:
    return what_if(LengthHistogram.from_lengths(lengths), BatchPolicy(strategy, **fields))


# --- by hand


def test_two_buckets_take_all_padding_away() -> None:
    # C1: 1 9 1 9 1 9 1 9, 4 rows: in file order 2 batches of 4 x 9 = 72 slots for 40 events; in two buckets 4 + 36
    lengths = [1, 9] * 4
    in_order = plan_epoch(lengths, BatchPolicy("pad_batch", rows=4, shuffle=False))
    assert (in_order.slots, in_order.kept_events) == (72, 40)
    assert round(in_order.padding_ratio, 4) == 0.4444
    found = scored(lengths, "bucket_rows", rows=4, bucket_edges=(1, 9))
    assert (found.slots, found.kept_events, found.padding_ratio, found.batches) == (40, 40, 0, 2)


def test_ghost_rows_count_as_slots() -> None:
    # 5 rows of 3 events, 4 rows of width 4 fit 16: 2 batches of ceil(5 / 2) = 3 rows, 1 ghost: 6 x 4 slots, 15 events
    found = scored([3] * 5, "bucket_graph", bucket_edges=(4,), token_budget=16)
    assert (found.batches, found.ghost_rows, found.slots, found.shapes) == (2, 1, 24, 1)
    assert found.padding_ratio == 1 - 15 / 24


@pytest.mark.parametrize(("drop_last", "batches", "dropped"), [(True, 63, 3), (False, 66, 0)])
def test_partial_batches_are_kept_or_dropped_in_every_bucket(drop_last: bool, batches: int, dropped: int) -> None:
    # C7: halves of 31 33 29 20 16, rounded down 15 16 14 10 8, rounded up 16 17 15 10 8
    lengths = [k + 1 for k, size in enumerate([31, 33, 29, 20, 16]) for _ in range(size)]
    found = scored(lengths, "bucket_rows", rows=2, bucket_edges=(1, 2, 3, 4, 5), drop_last=drop_last)
    assert (found.batches, found.sequences_dropped) == (batches, dropped)
    assert [g.sequences_dropped for g in found.groups] == ([1, 1, 1, 0, 0] if drop_last else [0] * 5)


def test_a_bucket_smaller_than_a_batch_is_lost_whole_and_said_so() -> None:
    # C7: 3 users, 4 rows
    found = scored([2, 2, 2, 9, 9, 9, 9], "bucket_rows", rows=4, bucket_edges=(2, 9), drop_last=True)
    assert [(g.batches, g.sequences, g.sequences_dropped) for g in found.groups] == [(0, 3, 3), (1, 4, 0)]
    assert (found.sequences_dropped, found.events_lost, found.batches) == (3, 6, 1)
    assert found.provenance["events_lost"] is Origin.MODELLED


def test_truncation_always_shows_users_and_events() -> None:
    # C14: one of four users is cut, and 85 of 100 events go
    found = scored([2, 3, 5, 90], "pad_recent", max_length=5)
    assert (found.sequences_truncated, found.events_lost, found.kept_events) == (1, 85, 15)
    found = scored([2, 3, 5, 90], "bucket_rows", bucket_edges=(3, 5), overflow="truncate")
    assert (found.sequences_truncated, found.events_lost, found.kept_events) == (1, 85, 15)
    found = scored([2, 3, 5, 90], "jagged", max_length=5)
    assert (found.sequences_truncated, found.events_lost, found.kept_events) == (1, 85, 15)


def test_shapes_count_the_partial_batches() -> None:
    # 5 rows of width 4 by 2: (2, 4) and (1, 4); 4 rows of width 9 by 2: (2, 9)
    assert scored([4] * 5 + [9] * 4, "bucket_rows", rows=2, bucket_edges=(4, 9)).shapes == 3
    assert scored([4] * 5, "pad_max", rows=9).shapes == 1


def test_the_largest_batch_is_that_of_the_widest_full_one() -> None:
    assert scored([4] * 5 + [9] * 1, "bucket_rows", rows=4, bucket_edges=(4, 9)).largest_batch_slots == 16  # 4x4, 1x9
    assert scored([4] * 5, "pad_max", rows=9).largest_batch_slots == 20
    # C5's kind: rows x longest, an upper bound, where batches are padded to their own longest row
    assert scored([1, 1, 1, 9], "pad_batch", rows=2).largest_batch_slots == 18


def test_groups_are_the_buckets_from_short_to_long() -> None:
    found = scored([1, 4, 3, 5, 6, 2], "bucket_rows", bucket_edges=(3, 5, 6))
    assert [(g.edge, g.width, g.sequences, g.slots, g.kept_events) for g in found.groups] == [
        (3, 3, 3, 9, 6),
        (5, 5, 2, 10, 9),
        (6, 6, 1, 6, 6),
    ]
    assert found.groups[0].padding_ratio == 1 - 6 / 9
    assert scored([1, 2], "jagged").groups == ()


@given(st.data(), LENGTHS | FEW)
def test_totals_are_the_sums_of_the_groups(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths))
    found = what_if(LengthHistogram.from_lengths(lengths), policy)
    assert found.kept_events + found.events_lost == pytest.approx(sum(lengths), abs=1e-9 * (1 + sum(lengths)))
    assert 0 <= found.padding_ratio <= 1
    assert found.slots >= found.kept_events - 1e-9
    assert set(found.provenance) == set(FIGURES) | ({"packs"} if policy.strategy == "packed" else set())
    if found.groups:
        for name in ("slots", "kept_events", "batches", "ghost_rows", "sequences_truncated"):
            assert getattr(found, name) == sum(getattr(g, name) for g in found.groups)


def test_only_single_rows_that_are_themselves_too_wide_are_over_the_budget() -> None:
    # one row a batch, as wide as itself: 9 is above the budget of 5; padded to the bucket's 9, all four are
    narrow = BatchPolicy("bucket_budget", bucket_edges=(9,), token_budget=5, oversize="single_row", pad_to="batch_max")
    lengths = [0, 0, 5, 9]
    for policy, over in [(narrow, 1), (replace(narrow, pad_to="edge"), 4)]:
        assert what_if(LengthHistogram.from_lengths(lengths), policy).batches_over_budget == over
        assert plan_epoch(lengths, policy).batches_over_budget == over


def test_an_expectation_is_never_rounded_to_less_room_than_events() -> None:
    # one row a batch: every batch is padded to its own length, so that nothing is padded
    found = what_if(LengthHistogram.from_lengths([1, 1, 1, 2]), BatchPolicy("pad_batch", rows=1))
    assert (found.slots, found.padding_ratio) == (pytest.approx(5), 0)
    assert found.slots >= found.kept_events


# --- expectations: the mean over every order in which the sequences can come


def mean_over_orders(lengths: list[int], policy: BatchPolicy) -> dict[str, Fraction]:
    """Plans without a shuffle, of every permutation of the lengths: each order counts once."""
    plans = [plan_epoch(order, policy) for order in permutations(lengths)]
    names = ("slots", "kept_events", "events_lost", "sequences_truncated")
    return {name: Fraction(sum(getattr(plan, name) for plan in plans), len(plans)) for name in names}


@settings(max_examples=12)
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"strategy": "pad_batch"}, id="pad_batch"),
        pytest.param({"strategy": "pad_batch", "max_length": 6, "length_multiple": 4}, id="pad_batch, capped, rounded"),
        pytest.param({"strategy": "pad_batch", "drop_last": True}, id="pad_batch, drop_last"),
        pytest.param({"strategy": "pad_recent", "max_length": 5, "drop_last": True}, id="pad_recent, drop_last"),
        pytest.param({"strategy": "bucket_rows", "pad_to": "batch_max"}, id="bucket_rows, batch_max"),
        pytest.param({"strategy": "bucket_rows", "drop_last": True, "bucket_widths": (2, 7)}, id="bucket_rows, widths"),
        pytest.param({"strategy": "bucket_budget", "pad_to": "batch_max", "drop_last": True}, id="bucket_budget"),
    ],
)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=5), st.integers(1, 4))
def test_expectations_equal_the_mean_over_all_orders(fields: dict[str, object], lengths: list[int], rows: int) -> None:
    values = {"rows": rows, "token_budget": 12 * rows, "bucket_edges": (3, 12), "shuffle": False} | fields
    policy = BatchPolicy(**values)
    found = what_if(LengthHistogram.from_lengths(lengths), policy)
    for name, wanted in mean_over_orders(lengths, policy).items():
        assert getattr(found, name) == pytest.approx(float(wanted), rel=1e-12, abs=1e-12), name


def test_the_expectation_is_what_shuffled_plans_scatter_around() -> None:
    # 600 sequences, 10 batches of 64 and fewer, 100 seeds: the mean is within 4 standard errors (1 in 16 000 by chance,
    # and the seeds are fixed)
    lengths = [1 + (k * k) % 97 for k in range(600)]
    policy = BatchPolicy("pad_batch", rows=64)
    slots = [plan_epoch(lengths, policy, seed=seed).slots for seed in range(100)]
    mean = sum(slots) / 100
    error = (sum((s - mean) ** 2 for s in slots) / 99 / 100) ** 0.5
    assert error > 0
    assert abs(scored(lengths, "pad_batch", rows=64).slots - mean) < 4 * error


# --- where figures come from


def test_expectations_are_exact_but_say_that_they_are_expectations() -> None:
    found = scored([1, 5, 9], "pad_batch", rows=2)
    assert found.provenance["slots"] is found.provenance["padding_ratio"] is Origin.EXACT
    assert found.reason["slots"] == "exact expectation over shuffles: batches are padded to their own longest row"
    assert found.provenance["shapes"] is found.provenance["largest_batch_slots"] is Origin.MODELLED


def test_what_drop_last_leaves_to_chance_is_modelled() -> None:
    found = scored([1, 5, 9], "pad_batch", rows=2, drop_last=True)
    assert found.provenance["padding_ratio"] is Origin.MODELLED
    assert "expectation over shuffles: drop_last leaves out" in found.reason["padding_ratio"]
    assert found.provenance["sequences_dropped"] is found.provenance["batches"] is Origin.EXACT


def test_the_number_of_jagged_batches_is_an_estimate_and_says_so() -> None:
    found = scored([1, 5, 9, 3], "jagged", token_budget=9)
    assert found.provenance["batches"] is Origin.MODELLED
    assert found.reason["batches"] == "estimate by renewal theory: it depends on the shuffle"
    assert (found.slots, found.padding_ratio) == (18, 0)
