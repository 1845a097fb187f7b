"""Edges that count whole batches: against every set of edges under ``what_if``, and never above ``optimal_edges``."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching import costs
from labkit.batching.edges import optimal_edges
from labkit.batching.finite_edges import MOST_STEPS, finite_steps, optimal_edges_finite
from labkit.batching.finite_program import counted
from labkit.batching.groups import resolve_groups
from labkit.batching.objective import Objective
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.errors import EdgesError, PolicyError
from labkit.lengths import presets
from labkit.lengths.histogram import LengthHistogram

ROWS = st.lists(st.integers(0, 14), min_size=1, max_size=40)
WEIGHTS = st.sampled_from([0, 0, 1, 3, 40, 0.5])


@st.composite
def templates(draw: st.DrawFn) -> BatchPolicy:
    """A bucket strategy with every field that changes its batches; lengths are below 15, budgets from 1 row on."""
    strategy = draw(st.sampled_from(["bucket_rows", "bucket_budget", "bucket_graph"]))
    values: dict[str, Any] = {
        "bucket_edges": (draw(st.integers(1, 20)),),
        "max_length": draw(st.none() | st.integers(1, 15)),
        "length_multiple": draw(st.sampled_from([1, 1, 2, 5])),
        "drop_last": draw(st.booleans()),
        "overflow": draw(st.sampled_from(["error", "truncate", "drop"])),
    }
    if strategy == "bucket_rows":
        return BatchPolicy(strategy, rows=draw(st.integers(1, 9)), **values)
    return BatchPolicy(
        strategy,
        token_budget=draw(st.integers(1, 90)),
        oversize="single_row",
        row_multiple=draw(st.sampled_from([1, 1, 2, 3, 8])),
        static_shapes=draw(st.sampled_from([None, True])),
        **values,
    )


def every_choice(histogram: LengthHistogram, buckets: int, policy: BatchPolicy) -> list[tuple[int, ...]]:
    ends = sorted({max(1, v) for v in histogram.capped(policy.max_length).values.tolist()})
    return [(*inner, ends[-1]) for size in range(min(buckets, len(ends))) for inner in combinations(ends[:-1], size)]


@settings(max_examples=300)
@given(ROWS, st.integers(1, 4), templates(), st.tuples(WEIGHTS, WEIGHTS, WEIGHTS, st.none() | WEIGHTS))
def test_no_set_of_edges_is_better(
    values: list[int], buckets: int, policy: BatchPolicy, weights: tuple[float, float, float, float | None]
) -> None:
    histogram, objective = LengthHistogram.from_lengths(values), Objective(*weights)
    found = optimal_edges_finite(histogram, buckets, policy, objective=objective)
    scores = {
        edges: objective.of(what_if(histogram, replace(policy, bucket_edges=edges)))
        for edges in every_choice(histogram, buckets, policy)
    }
    assert min(scores, key=lambda edges: (scores[edges], len(edges), edges)) == found.edges
    assert found.total == scores[found.edges]
    assert found.curve is not None
    for k, least in enumerate(found.curve, start=1):
        assert least == min(v - objective.per_bucket * len(e) for e, v in scores.items() if len(e) <= k)


@settings(max_examples=100)
@given(ROWS, st.integers(1, 5), templates(), st.sampled_from([None, costs.attention(0.25), costs.tiled(4)]))
def test_it_is_never_worse_than_optimal_edges(
    values: list[int], buckets: int, policy: BatchPolicy, cost: costs.RowCost | None
) -> None:
    histogram, objective = LengthHistogram.from_lengths(values), Objective()
    multiple = policy.length_multiple
    ideal = optimal_edges(histogram.capped(policy.max_length), buckets, cost=cost, length_multiple=multiple)
    found = optimal_edges_finite(histogram, buckets, policy, cost=cost)
    score = objective.of(what_if(histogram, replace(policy, bucket_edges=found.edges)), cost)
    assert found.cost == score
    assert score <= objective.of(what_if(histogram, replace(policy, bucket_edges=ideal.edges)), cost)


@given(st.integers(0, 60), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(1, 12))
def test_rows_are_counted_as_groups_split_them(most: int, n: int, static: bool, drop: bool, multiple: int) -> None:
    policy = BatchPolicy(
        "bucket_budget",
        bucket_edges=(1,),
        token_budget=max(1, most),
        static_shapes=static,
        drop_last=drop,
        row_multiple=multiple,
    )
    groups = resolve_groups(policy, None)
    rows, batches, dropped = counted(groups, np.array([n]), groups.rows)
    split = groups.split(0, n)
    ghosts = split.rows - split.last if static and split.batches else 0
    assert (rows[0], batches[0], dropped[0]) == (n - split.dropped + ghosts, split.batches, split.dropped)


# --- when it matters


def test_static_shapes_on_few_households_pay_for_their_ghosts() -> None:
    # 8 buckets of 2 500 households at 16384 slots a batch: one row a ghost is up to 4193 slots
    histogram = presets.preset("household-lines")
    ideal = optimal_edges(histogram, 8)
    policy = BatchPolicy("bucket_graph", bucket_edges=ideal.edges)
    found = optimal_edges_finite(histogram, 8, policy)
    before = what_if(histogram, policy)
    after = what_if(histogram, replace(policy, bucket_edges=found.edges))
    assert (round(before.padding_ratio, 4), before.ghost_rows) == (0.2218, 24)
    assert (round(after.padding_ratio, 4), after.ghost_rows) == (0.2081, 2)
    assert after.batches < before.batches
    assert after.slots == found.cost


def test_without_ghosts_the_slots_are_those_of_optimal_edges() -> None:
    histogram = presets.preset("ml-100k")
    ideal = optimal_edges(histogram, 8)
    found = optimal_edges_finite(histogram, 8, BatchPolicy("bucket_budget", bucket_edges=ideal.edges))
    assert (found.edges, found.cost, found.curve) == (ideal.edges, ideal.cost, ideal.curve)


def test_a_batch_can_be_given_a_price() -> None:
    # 3 rows of 4 and 3 of 5, budget 15 = 3 rows of 5 or of 4: apart 27 slots in 2 batches, together 30 in 2
    three = LengthHistogram.from_lengths([4, 4, 4, 5, 5, 5])
    policy = BatchPolicy("bucket_budget", bucket_edges=(5,), token_budget=15)
    assert optimal_edges_finite(three, 2, policy).edges == (4, 5)
    # 2 of 4 and 4 of 5: apart ceil(2/3) + ceil(4/3) = 3 batches, together 2: 30 + 2 c against 28 + 3 c
    two = LengthHistogram.from_lengths([4, 4, 5, 5, 5, 5])
    assert optimal_edges_finite(two, 2, policy, objective=Objective(per_batch=1)).edges == (4, 5)
    assert optimal_edges_finite(two, 2, policy, objective=Objective(per_batch=2)).edges == (5,)  # a tie: fewer buckets
    batches = optimal_edges_finite(two, 2, policy, objective=Objective(per_slot=0, per_batch=1))
    assert (batches.edges, batches.cost) == ((5,), 2)


def test_a_bucket_can_be_charged() -> None:
    found = optimal_edges_finite(
        LengthHistogram.from_lengths([1, 2, 10]),
        3,
        BatchPolicy("bucket_graph", bucket_edges=(10,)),
        objective=Objective(per_bucket=2),
    )
    assert (found.edges, found.cost, found.total, found.curve) == ((2, 10), 14, 18, (30, 14, 13))


def test_leaving_out_never_pays() -> None:
    # rows of 2: with edges (1, 9) both sequences are left out and no slot is left; with (9,) they make a batch
    histogram = LengthHistogram.from_lengths([1, 9])
    policy = BatchPolicy("bucket_rows", bucket_edges=(9,), rows=2, drop_last=True)
    assert optimal_edges_finite(histogram, 2, policy).edges == (9,)
    free = optimal_edges_finite(histogram, 2, policy, objective=Objective(per_dropped=0))
    assert (free.edges, free.cost) == ((1, 9), 0)


def test_numbers_beyond_64_bits_do_not_wrap_around() -> None:
    # 1e6 * 1e6 + 2e6 * 1e7 = 2.1e13 slots at a million each
    histogram = LengthHistogram(np.array([10**6, 2 * 10**6]), np.array([10**6, 10**7]))
    policy = BatchPolicy("bucket_budget", bucket_edges=(1,), token_budget=2**40, row_multiple=2**50)
    found = optimal_edges_finite(histogram, 2, policy, objective=Objective(per_slot=10**6))
    assert found.cost == pytest.approx(2.1e19, rel=1e-12)
    assert found.edges == (10**6, 2 * 10**6)


# --- refused


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            BatchPolicy("pad_batch"),
            "strategy pad_batch has no buckets: use bucket_rows, bucket_budget or bucket_graph.",
        ),
        (
            BatchPolicy("bucket_rows", bucket_edges=(9,), bucket_widths=(8,)),
            "bucket_widths belong to edges that are given: leave them out where edges are searched.",
        ),
        (
            BatchPolicy("bucket_rows", bucket_edges=(9,), pad_to="batch_max"),
            "pad_to='batch_max' has no slots before the shuffle: search the edges with pad_to='edge'.",
        ),
        (
            BatchPolicy("bucket_budget", bucket_edges=(1,), token_budget=8),
            (
                "bucket width 9 is above token_budget 8, so not one row fits: raise token_budget to 9 or more, set "
                "max_length, or choose oversize 'single_row'."
            ),
        ),
    ],
    ids=["no buckets", "widths", "batch_max", "budget"],
)
def test_a_policy_without_edges_to_search_is_refused(policy: BatchPolicy, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        optimal_edges_finite(LengthHistogram.from_lengths([1, 9]), 2, policy)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["per_slot", "per_batch", "per_bucket", "per_dropped"])
def test_a_weight_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(EdgesError, match=rf"^{name} must be a finite number of 0 or more: got -1\.$"):
        Objective(**{name: -1})


def test_too_many_lengths_are_refused_with_the_way_out() -> None:
    # 4096 lengths, K = 200: 200 * 4096^2 = 3.4e9 steps
    histogram = LengthHistogram.from_lengths(range(1, 4097))
    policy = BatchPolicy("bucket_budget", bucket_edges=(1,))
    assert finite_steps(histogram, 200) == 200 * 4096**2 > MOST_STEPS
    with pytest.raises(EdgesError) as caught:
        optimal_edges_finite(histogram, 200, policy)
    assert str(caught.value) == (
        "4096 lengths and 200 buckets take 3.4e+09 steps, above 2.1e+09: raise length_multiple so that widths "
        "coincide, ask for fewer buckets, or use optimal_edges."
    )


def test_lengths_of_one_width_are_merged_where_they_are_too_many() -> None:
    # multiples of 64 leave 64 widths
    histogram = LengthHistogram.from_lengths(range(1, 4097))
    policy = BatchPolicy("bucket_budget", bucket_edges=(1,), length_multiple=64)
    found = optimal_edges_finite(histogram, 200, policy)
    ideal = optimal_edges(histogram, 200, length_multiple=64)
    assert (found.edges, found.cost) == (ideal.edges, ideal.cost)
