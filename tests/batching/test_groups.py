"""Groups: edges, caps, widths and rows resolved on given lengths, and what does not fit them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.groups import Groups, resolve_groups, round_up
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram


def groups(lengths: list[int], strategy: str, **fields: object) -> Groups:
    return resolve_groups(BatchPolicy(strategy, **fields), LengthHistogram.from_lengths(lengths))


def refusals(lengths: list[int], policy: BatchPolicy) -> tuple[str, str]:
    """What the what-if says, who knows lengths only, and the plan, who knows indices too."""
    with pytest.raises(PolicyError) as scored:
        what_if(LengthHistogram.from_lengths(lengths), policy)
    with pytest.raises(PolicyError) as planned:
        plan_epoch(lengths, policy)
    return str(scored.value), str(planned.value)


# --- which bucket


def test_a_length_at_an_edge_belongs_to_that_edge() -> None:
    # C6: (0, 3] (3, 5] (5, 6]; a length 0 belongs to the first
    found = groups([1, 4, 3, 5, 6, 2], "bucket_rows", bucket_edges=(3, 5, 6))
    assert found.of_lengths(np.array([0, 1, 2, 3, 4, 5, 6])).tolist() == [0, 0, 0, 0, 1, 1, 2]
    plan = plan_epoch([1, 4, 3, 5, 6, 2], BatchPolicy("bucket_rows", bucket_edges=(3, 5, 6), shuffle=False))
    assert [batch.tolist() for batch in plan] == [[0, 2, 5], [1, 3], [4]]


@given(st.sets(st.integers(1, 60), min_size=1, max_size=8).map(sorted))
def test_every_edge_is_upper_inclusive(edges: list[int]) -> None:
    found = groups([edges[-1]], "bucket_rows", bucket_edges=edges)
    for k, edge in enumerate(edges):
        assert found.of_lengths(np.array([edge]))[0] == k
        if edge < edges[-1]:
            assert found.of_lengths(np.array([edge + 1]))[0] == k + 1


def test_bounds_cut_the_histogram_at_the_same_places() -> None:
    histogram = LengthHistogram.from_lengths([0, 1, 3, 4, 5, 6, 9])
    policy = BatchPolicy("bucket_rows", bucket_edges=(3, 5, 6), overflow="truncate")
    assert resolve_groups(policy, histogram).bounds(histogram).tolist() == [0, 3, 5, 7]
    policy = BatchPolicy("bucket_rows", bucket_edges=(3, 5, 6), overflow="drop")
    assert resolve_groups(policy, histogram).bounds(histogram).tolist() == [0, 3, 5, 6]


# --- caps


@pytest.mark.parametrize(
    ("cap", "edges"),
    [
        (None, [4, 8, 16]),
        (16, [4, 8, 16]),
        (17, [4, 8, 16]),
        (9, [4, 8, 9]),
        (8, [4, 8]),
        (7, [4, 7]),
        (4, [4]),
        (1, [1]),
    ],
)
def test_edges_above_the_cap_collapse_to_one_at_the_cap(cap: int | None, edges: list[int]) -> None:
    found = groups([16], "bucket_rows", bucket_edges=(4, 8, 16), max_length=cap, overflow="truncate")
    assert found.edges.tolist() == found.limits.tolist() == found.widths.tolist() == edges


def test_a_tighter_cap_never_keeps_more() -> None:
    # a length 9, or one cut to 9, belongs to the bucket up to 10, of which the last 6 events are kept
    for cap, kept in [(None, [6, 20]), (9, [6, 6]), (5, [5, 5])]:
        policy = BatchPolicy("bucket_rows", bucket_edges=(5, 10, 20), bucket_widths=(5, 6, 20), max_length=cap)
        assert plan_epoch([9, 20], policy).kept_events == sum(kept)


def test_a_cap_comes_before_the_last_edge_is_checked() -> None:
    # 600 is capped to 512 first, so that nothing is above the last edge
    plan = plan_epoch([3, 600, 4], BatchPolicy("bucket_rows", bucket_edges=(512,), max_length=512))
    assert (plan.sequences_truncated, plan.events_lost, plan.sequences_dropped) == (1, 88, 0)


@pytest.mark.parametrize("cap", [512, 100])
def test_nothing_is_dropped_where_the_cap_is_at_the_last_edge(cap: int) -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(8, 512), max_length=cap, overflow="drop")
    assert plan_epoch([3, 600, 4], policy).sequences_dropped == 0


def test_pad_recent_caps_at_the_99th_percentile_rounded_up() -> None:
    lengths = [*range(1, 101)]  # P99 = 99.01, so 100
    assert groups(lengths, "pad_recent").edges.tolist() == [100]
    lengths = [1] * 99 + [2] * 100  # P99 = 2
    assert groups(lengths, "pad_recent").edges.tolist() == [2]
    assert groups([0, 0], "pad_recent").edges.tolist() == [1]


def test_pad_recent_pads_to_its_cap_even_where_nothing_is_as_long() -> None:
    assert groups([3, 4], "pad_recent", max_length=50).widths.tolist() == [50]
    assert groups([3, 4], "pad_batch", max_length=50).widths.tolist() == [4]


def test_pad_max_never_cuts() -> None:
    assert groups([3, 400], "pad_max", max_length=50).widths.tolist() == [400]


# --- widths


def test_widths_are_rounded_up_after_everything_else() -> None:
    found = groups([30], "bucket_budget", bucket_edges=(3, 8, 9, 30), length_multiple=8, token_budget=100)
    assert found.widths.tolist() == [8, 8, 16, 32]
    assert found.rows.tolist() == [12, 12, 6, 3]  # 100 // 8, 100 // 16, 100 // 32: the budget sees the rounded width
    assert found.limits.tolist() == [3, 8, 9, 30]  # rounding up adds padding, never events above the edge


def test_a_given_width_cuts_what_lies_above_it_and_a_rounded_one_cuts_less() -> None:
    # edge 20, width 10: 10 events kept; rounded up to 16: 16 kept; rounded up to 32: all 20
    for multiple, kept in [(1, 10), (16, 16), (32, 20)]:
        found = groups([20], "bucket_rows", bucket_edges=(20,), bucket_widths=(10,), length_multiple=multiple)
        assert found.limits.tolist() == [kept]


def test_round_up_gives_at_least_one_multiple() -> None:
    assert round_up(np.array([0, 1, 8, 9]), 8).tolist() == [8, 8, 8, 16]
    assert round_up(np.array([0, 1, 8, 9]), 1).tolist() == [1, 1, 8, 9]


# --- rows


@pytest.mark.parametrize(
    ("budget", "multiple", "rows"),
    [(100, 1, 10), (99, 1, 9), (100, 4, 8), (100, 16, 10), (10, 8, 1), (160, 16, 16)],
)
def test_rows_are_the_budget_over_the_width_down_to_the_multiple(budget: int, multiple: int, rows: int) -> None:
    found = groups([10], "bucket_budget", bucket_edges=(10,), token_budget=budget, row_multiple=multiple)
    assert found.rows.tolist() == [rows]
    assert not found.over_budget.any()


def test_static_rows_are_spread_evenly_over_the_batches() -> None:
    # 10 rows, 4 fit: 3 batches of ceil(10 / 3) = 4; 9 rows: 3 batches of 3; 5 rows: 2 batches of 3, one a ghost
    found = groups([5], "bucket_graph", bucket_edges=(5,), token_budget=20)
    splits = [found.split(0, n) for n in (10, 9, 5, 1, 0)]
    assert [(s.batches, s.rows, s.last) for s in splits] == [(3, 4, 2), (3, 3, 3), (2, 3, 2), (1, 1, 1), (0, 4, 0)]


def test_static_rows_go_up_to_the_multiple_where_it_fits() -> None:
    # 8 rows fit: 10 rows are 2 batches of 5, which goes up to 8; with 7 rows that fit, 8 does not, and 5 stay
    assert groups([5], "bucket_graph", bucket_edges=(5,), token_budget=40, row_multiple=8).split(0, 10).rows == 8
    assert groups([5], "bucket_graph", bucket_edges=(5,), token_budget=35, row_multiple=8).split(0, 10).rows == 5


def test_one_row_over_the_budget_is_the_only_overshoot() -> None:
    # C5: a budget of 25 holds no row of 128
    policy = BatchPolicy("bucket_budget", bucket_edges=(5, 128), token_budget=25, oversize="single_row")
    plan = plan_epoch([3, 100, 5, 128], policy)
    assert sorted(zip(plan.rows.tolist(), plan.padded_lengths.tolist(), strict=True)) == [(1, 128), (1, 128), (2, 5)]
    assert plan.batches_over_budget == 2
    assert what_if(LengthHistogram.from_lengths([3, 100, 5, 128]), policy).batches_over_budget == 2


# --- what does not fit


def test_a_length_above_the_last_edge_is_named_with_its_index() -> None:
    # C4: 600 > 512 at index 1
    policy = BatchPolicy("bucket_rows", bucket_edges=(512,))
    fix = "raise the last edge, set max_length, or choose overflow 'truncate' or 'drop'."
    scored, planned = refusals([3, 600, 4], policy)
    assert scored == f"longest length 600 > last bucket edge 512 (1 of 3 sequences above it): {fix}"
    assert planned == (
        f"longest length 600 > last bucket edge 512 (1 of 3 sequences above it, the first at index 1): {fix}"
    )


def test_several_lengths_above_the_last_edge_are_counted() -> None:
    _, planned = refusals([3, 513, 4, 600, 512], BatchPolicy("bucket_budget", bucket_edges=(8, 512)))
    assert "longest length 600 > last bucket edge 512 (2 of 5 sequences above it, the first at index 1)" in planned


def test_an_edge_below_the_cap_is_refused_with_the_capped_length() -> None:
    scored, _ = refusals([3, 600, 4], BatchPolicy("bucket_rows", bucket_edges=(50,), max_length=100))
    assert scored.startswith("longest length 100 > last bucket edge 50 (1 of 3 sequences above it)")


def test_truncate_keeps_the_last_edge_of_events_and_drop_counts() -> None:
    # C4: truncate keeps 512 of 600, 88 lost; drop leaves one sequence out, 600 lost
    cut = plan_epoch([3, 600, 4], BatchPolicy("bucket_rows", bucket_edges=(512,), overflow="truncate"))
    assert (cut.sequences_truncated, cut.events_lost, cut.sequences_dropped) == (1, 88, 0)
    left = plan_epoch([3, 600, 4], BatchPolicy("bucket_rows", bucket_edges=(512,), overflow="drop"))
    assert (left.sequences_truncated, left.events_lost, left.sequences_dropped) == (0, 600, 1)
    assert sorted(left.order.tolist()) == [0, 2]


@pytest.mark.parametrize("strategy", ["bucket_budget", "bucket_graph"])
def test_a_width_above_the_budget_is_refused(strategy: str) -> None:
    # C5: a budget of 25 holds no row of 128
    scored, planned = refusals([3, 100], BatchPolicy(strategy, bucket_edges=(8, 128), token_budget=25))
    assert (
        scored
        == planned
        == (
            "bucket width 128 is above token_budget 25, so not one row fits: "
            "raise token_budget to 128 or more, set max_length, or choose oversize 'single_row'."
        )
    )


@pytest.mark.parametrize("strategy", ["bucket_budget", "bucket_graph"])
def test_of_several_widths_above_the_budget_the_widest_is_named(strategy: str) -> None:
    # the advice must be enough: with 30 the bucket of 128 would be refused next
    policy = BatchPolicy(strategy, bucket_edges=(8, 30, 128), token_budget=25)
    line = (
        "bucket width 128 is above token_budget 25, so not one row fits (2 of 3 buckets are too wide): "
        "raise token_budget to 128 or more, set max_length, or choose oversize 'single_row'."
    )
    assert refusals([3, 20, 100], policy) == (line, line)
    what_if(LengthHistogram.from_lengths([3, 20, 100]), replace(policy, token_budget=128))


def test_of_widths_that_do_not_ascend_the_widest_is_named() -> None:
    policy = BatchPolicy("bucket_budget", bucket_edges=(8, 30, 128), bucket_widths=(8, 30, 26), token_budget=25)
    scored, _ = refusals([3, 20, 100], policy)
    assert scored.startswith("bucket width 30 is above token_budget 25, so not one row fits (2 of 3 buckets ")


def test_the_rounded_width_is_what_must_fit_the_budget() -> None:
    scored, _ = refusals(
        [3, 100], BatchPolicy("bucket_budget", bucket_edges=(100,), token_budget=100, length_multiple=8)
    )
    assert scored.startswith("bucket width 104 is above token_budget 100")


def test_everything_dropped_is_an_epoch_without_batches() -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(5,), overflow="drop")
    plan, scored = plan_epoch([9, 7], policy), what_if(LengthHistogram.from_lengths([9, 7]), policy)
    assert len(plan) == scored.batches == plan.slots == scored.slots == 0
    assert plan.sequences_dropped == scored.sequences_dropped == 2
    assert plan.events_lost == scored.events_lost == 16
    assert plan.padding_ratio == scored.padding_ratio == 0
    assert list(plan) == []


def test_jagged_batches_have_no_groups() -> None:
    with pytest.raises(PolicyError, match=r"^strategy jagged has no padded groups"):
        groups([3], "jagged")
