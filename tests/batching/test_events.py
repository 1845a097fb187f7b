"""Batches filled by real events: the rule to the last event, and the estimate of how many there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching import arrange
from labkit.batching.events import jagged_figures
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram


def batches(lengths: list[int], budget: int, max_rows: int = 65_536) -> list[list[int]]:
    offsets = arrange.fill_budget(np.array(lengths), budget, max_rows).tolist()
    return [lengths[a:b] for a, b in itertools.pairwise(offsets)]


# --- the rule


def test_batches_close_before_the_event_that_does_not_fit() -> None:
    assert batches([2, 2, 2, 2, 10], 12) == [[2, 2, 2, 2], [10]]
    assert batches([2, 2, 2, 2, 10], 18) == [[2, 2, 2, 2, 10]]  # 18 events are exactly the budget
    assert batches([2, 2, 2, 2, 10], 17) == [[2, 2, 2, 2], [10]]
    assert batches([5, 5, 5], 5) == [[5], [5], [5]]


def test_empty_rows_cost_no_events_but_count_as_rows() -> None:
    assert batches([0, 0, 3, 0], 3) == [[0, 0, 3, 0]]
    assert batches([0, 0, 3, 0], 3, max_rows=2) == [[0, 0], [3, 0]]
    assert batches([0] * 5, 1, max_rows=2) == [[0, 0], [0, 0], [0]]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(20, 70), st.integers(1, 20))
def test_every_batch_is_as_full_as_the_order_allows(lengths: list[int], budget: int, max_rows: int) -> None:
    found = batches(lengths, budget, max_rows)
    assert [x for batch in found for x in batch] == lengths
    for batch, following in zip(found, [*found[1:], None], strict=True):
        assert sum(batch) <= budget
        assert 1 <= len(batch) <= max_rows
        if following is not None:
            assert len(batch) == max_rows or sum(batch) + following[0] > budget


# --- what does not fit


def test_a_length_above_the_budget_is_named_with_its_index() -> None:
    policy = BatchPolicy("jagged", token_budget=100)
    fix = "so it fits no batch: raise token_budget to 600 or more, or set max_length."
    with pytest.raises(PolicyError) as scored:
        what_if(LengthHistogram.from_lengths([3, 600, 4]), policy)
    assert str(scored.value) == f"longest length 600 is above token_budget 100, {fix}"
    with pytest.raises(PolicyError) as planned:
        plan_epoch([3, 600, 4], policy)
    assert str(planned.value) == f"longest length 600 (index 1) is above token_budget 100, {fix}"


def test_a_cap_within_the_budget_makes_every_length_fit() -> None:
    plan = plan_epoch([3, 600, 4], BatchPolicy("jagged", token_budget=100, max_length=100))
    assert (plan.kept_events, plan.events_lost, plan.sequences_truncated) == (107, 500, 1)
    with pytest.raises(PolicyError, match=r"longest length 101 .* is above token_budget 100"):
        plan_epoch([3, 600, 4], BatchPolicy("jagged", token_budget=100, max_length=101))


# --- exact where the shuffle does not matter


@pytest.mark.parametrize(
    ("lengths", "budget", "max_rows", "wanted"),
    [
        pytest.param([3] * 10, 7, 99, 5, id="equal lengths: 2 a batch"),
        pytest.param([3] * 10, 7, 1, 10, id="equal lengths, one row a batch"),
        pytest.param([1, 2, 3, 4], 10, 99, 1, id="all fit one batch"),
        pytest.param([1, 2, 3, 4], 8, 2, 2, id="two rows always fit"),
        pytest.param([0] * 7, 1, 3, 3, id="nothing but empty rows"),
    ],
)
def test_batches_are_exact_where_no_shuffle_changes_them(
    lengths: list[int], budget: int, max_rows: int, wanted: int
) -> None:
    policy = BatchPolicy("jagged", token_budget=budget, max_rows=max_rows)
    figures = jagged_figures(LengthHistogram.from_lengths(lengths), policy)
    assert (figures.batches, figures.batches_exact) == (wanted, True)
    assert {len(plan_epoch(lengths, policy, seed=seed)) for seed in range(5)} == {wanted}


# --- an estimate elsewhere


def zipf(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.minimum(rng.zipf(1.6, n), 2000)


def lognormal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.minimum(rng.lognormal(3, 1.2, n).astype(int), 3000)


LAWS = {
    "zipf": zipf,
    "lognormal": lognormal,
    "uniform": lambda rng, n: rng.integers(0, 400, n),
    "narrow": lambda rng, n: rng.integers(90, 111, n),
    "two points, few long": lambda rng, n: np.where(rng.random(n) < 0.9, 3, 1000),
    "two points, half long": lambda rng, n: np.where(rng.random(n) < 0.5, 1, 700),
    "two points, alike": lambda rng, n: np.where(rng.random(n) < 0.5, 500, 510),
    "mostly zeros": lambda rng, n: np.where(rng.random(n) < 0.97, 0, rng.integers(1, 500, n)),
    "spike at a cap": lambda rng, n: np.minimum(lognormal(rng, n), 64),
}
BUDGETS = {"max": 1.0, "1.3 max": 1.3, "2 max": 2.0, "5 max": 5.0, "40 max": 40.0}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_estimate_is_within_one_batch_or_one_percent(law: str, budget: str) -> None:
    # a single shuffle scatters by itself: the estimate is held against the mean over seeds, give or take three
    # standard errors of that mean
    for n, seeds in [(20, 40), (400, 20), (10_000, 8)]:
        lengths = LAWS[law](np.random.default_rng(n), n)
        histogram = LengthHistogram.from_lengths(lengths)
        for max_rows in (65_536, 64, 7):
            policy = BatchPolicy("jagged", token_budget=int(BUDGETS[budget] * histogram.max), max_rows=max_rows)
            counts = [len(plan_epoch(lengths, policy, seed=seed)) for seed in range(seeds)]
            mean, error = float(np.mean(counts)), float(np.std(counts)) / np.sqrt(seeds - 1)
            estimate = what_if(histogram, policy).batches
            assert abs(estimate - mean) <= max(1.0, 0.01 * mean) + 3 * error, (n, max_rows, estimate, mean)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=50), st.integers(50, 200), st.integers(1, 60))
def test_the_estimate_is_never_below_what_rows_and_events_need(lengths: list[int], budget: int, max_rows: int) -> None:
    policy = BatchPolicy("jagged", token_budget=budget, max_rows=max_rows)
    figures = jagged_figures(LengthHistogram.from_lengths(lengths), policy)
    assert figures.batches >= max(-(-len(lengths) // max_rows), -(-sum(lengths) // budget), 1)
    assert figures.batches <= len(lengths) + 1


@pytest.mark.parametrize("most", [2**31, 2**62])
def test_huge_budgets_and_row_limits_are_no_special_case(most: int) -> None:
    lengths = [1, 5, 9]
    policy = BatchPolicy("jagged", token_budget=most, max_rows=most)
    assert what_if(LengthHistogram.from_lengths(lengths), policy).batches == len(plan_epoch(lengths, policy)) == 1
    policy = BatchPolicy("jagged", token_budget=10, max_rows=most)
    assert 2 <= what_if(LengthHistogram.from_lengths(lengths), policy).batches <= 3
