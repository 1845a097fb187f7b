"""Bucket edges: by quantiles, by the P95 rule, and the optimum against every possible choice."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.edges import Edges, equal_quantile_edges, optimal_edges, quantile_edges, quantile_p95_edges
from labkit.errors import EdgesError, LengthsError, PolicyError
from labkit.lengths.histogram import LengthHistogram
from tests.batching.draws import FEW, LENGTHS

COUNTS = st.dictionaries(st.integers(0, 40), st.integers(1, 30), min_size=1, max_size=9)
EQUAL_COUNTS = st.sets(st.integers(0, 20), min_size=1, max_size=9).map(lambda s: dict.fromkeys(s, 1))
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def of(counts: dict[int, int]) -> LengthHistogram:
    return LengthHistogram(np.array(sorted(counts)), np.array([counts[v] for v in sorted(counts)]))


def lengths(*values: int) -> LengthHistogram:
    return LengthHistogram.from_lengths(values)


# --- quantiles


def test_equal_quantiles_collapse_to_strictly_increasing_edges() -> None:
    # C8: 1 1 1 1 1 1 2 3 4 5: P20 = P40 = 1, P60 = 1.4, P80 = 3.2, P95 = 4.55, rounded up 1 1 2 4 5
    edges = quantile_edges(lengths(1, 1, 1, 1, 1, 1, 2, 3, 4, 5), (0.2, 0.4, 0.6, 0.8, 0.95))
    assert edges.edges == (1, 2, 4, 5)
    assert edges.asked == 5
    assert edges.note == "5 buckets asked, 4 left: equal edges and empty buckets are merged."


def test_an_edge_whose_bucket_is_empty_is_deleted() -> None:
    # P50 = 1, P95 of 19 ones and a 100 = 1 + 0.05 * 99 = 5.95, rounded up 6: nothing lies within (1, 6]
    edges = quantile_edges(lengths(*[1] * 19, 100), (0.5, 0.95))
    assert edges.edges == (1,)
    assert edges.note == "2 buckets asked, 1 left: equal edges and empty buckets are merged."


def test_edges_need_not_be_observed_lengths() -> None:
    # P50 of 1 and 10 is 5.5
    assert quantile_edges(lengths(1, 10), (0.5, 1)).edges == (6, 10)


def test_quantiles_in_any_order_give_sorted_edges() -> None:
    assert quantile_edges(lengths(*range(1, 101)), (1.0, 0.5, 0.5)).edges == (51, 100)


def test_lengths_of_zero_are_in_a_bucket_of_edge_one() -> None:
    assert quantile_edges(lengths(0, 0, 0), (0.5, 1.0)).edges == (1,)
    assert optimal_edges(lengths(0, 0, 0), 4).edges == (1,)
    assert quantile_p95_edges(lengths(0, 0, 0)).widths == (1,)


def test_no_note_where_all_buckets_are_left() -> None:
    edges = equal_quantile_edges(lengths(1, 2, 3, 4), 4)
    assert edges.edges == (2, 3, 4)  # P25 = 1.75, P50 = 2.5, P75 = 3.25: rounded up 2 3 4 4
    assert equal_quantile_edges(lengths(1, 2, 3, 4), 1).note is None


@given(LENGTHS | FEW, SHARES)
def test_quantile_edges_follow_the_rule(values: list[int], shares: list[float]) -> None:
    edges = quantile_edges(LengthHistogram.from_lengths(values), shares).edges
    candidates = sorted({max(1, ceil(x)) for x in np.quantile(values, shares)})
    assert set(edges) <= set(candidates)
    assert all(a < b for a, b in pairwise(edges))
    for low, edge in zip((-1, *edges), edges, strict=False):  # no bucket is empty
        assert any(low < v <= edge for v in values)
    for edge in set(candidates) - set(edges):  # a deleted one held nothing that the edge before did not
        before = max((e for e in edges if e < edge), default=-1)
        assert not any(before < v <= edge for v in values)


@given(LENGTHS | FEW, st.integers(1, 9))
def test_equal_quantiles_end_at_the_longest(values: list[int], buckets: int) -> None:
    edges = equal_quantile_edges(LengthHistogram.from_lengths(values), buckets)
    assert edges == quantile_edges(LengthHistogram.from_lengths(values), [k / buckets for k in range(1, buckets + 1)])
    assert edges.edges[-1] == max(1, *values)
    assert len(edges) <= edges.asked == buckets


def test_the_p95_rule_pads_each_bucket_to_its_own_p95() -> None:
    # 1 .. 100: inner edges P20 = 20.8, P40 = 40.6, P60 = 60.4, P80 = 80.2, rounded up 21 41 61 81, open end 100;
    # P95 of 1 .. 21 is 1 + 0.95 * 20 = 20, of 22 .. 41 it is 22 + 0.95 * 19 = 40.05, and so on
    edges = quantile_p95_edges(lengths(*range(1, 101)))
    assert edges.edges == (21, 41, 61, 81, 100)
    assert edges.widths == (20, 41, 61, 81, 100)
    assert edges.asked == 5


@given(LENGTHS | FEW, SHARES)
def test_p95_widths_are_those_of_the_lengths_in_the_bucket(values: list[int], shares: list[float]) -> None:
    edges = quantile_p95_edges(LengthHistogram.from_lengths(values), shares)
    assert edges.widths is not None
    assert edges.edges[-1] == max(1, *values)
    for low, edge, width in zip((-1, *edges.edges), edges.edges, edges.widths, strict=False):
        inside = [v for v in values if low < v <= edge]
        assert width == max(1, ceil(np.quantile(inside, 0.95))) <= edge


# --- refused


@pytest.mark.parametrize("call", [quantile_edges])
def test_no_quantiles_at_all_are_refused(call: object) -> None:
    with pytest.raises(EdgesError, match=r"^quantiles are empty: give at least one, for example 0\.5,0\.95\.$"):
        quantile_edges(lengths(1, 2), ())


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_quantile_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(LengthsError, match=r"quantiles must lie within 0 \.\. 1"):
        quantile_edges(lengths(1, 2), (0.5, share))


@pytest.mark.parametrize("make", [optimal_edges, equal_quantile_edges])
@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        (0, "buckets must be 1 or more: got 0."),
        (-1, "buckets must be 1 or more: got -1."),
        (2.0, "buckets must be a whole number: got 2.0 (float)."),
    ],
)
def test_a_number_of_buckets_that_is_none_is_refused(make: object, buckets: object, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        make(lengths(1, 2), buckets)  # type: ignore[operator]
    assert str(caught.value) == message


@pytest.mark.parametrize("multiple", [0, 2**31])
def test_a_length_multiple_out_of_range_is_refused(multiple: int) -> None:
    with pytest.raises(PolicyError, match=r"^length_multiple must be "):
        optimal_edges(lengths(1, 2), 2, length_multiple=multiple)


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ([3, 2, 4], "cost must not decrease with the length: 3 at length 1, 2 at 5."),
        ([-1, 2, 4], "cost must give finite numbers of 0 or more."),
        ([1, 2, float("inf")], "cost must give finite numbers of 0 or more."),
        ([1, float("nan"), 2], "cost must give finite numbers of 0 or more."),
        (["a", "b", "c"], "cost must give finite numbers of 0 or more."),
        ([1, 2], "cost must give one price per length: got shape (2,) for 3 lengths."),
        ([1, 2, 1e308], "cost must give numbers whose sum is finite: got 1e+308 for 3 sequences."),
    ],
    ids=str,
)
def test_a_cost_that_cannot_be_one_is_refused(prices: list[object], message: str) -> None:
    with pytest.raises(EdgesError) as caught:
        optimal_edges(lengths(1, 5, 9), 2, cost=lambda _: np.array(prices))
    assert str(caught.value) == message


# --- the optimum


def cheapest(prices: list[Fraction], counts: list[int], buckets: int) -> tuple[Fraction, tuple[int, ...]]:
    """Least cost and lexicographically first cuts with at most so many buckets, by trying every choice.

    ``prices`` are strictly increasing, so that each further cut saves something: no tie between sizes.
    """
    last = len(prices) - 1
    best: tuple[Fraction, tuple[int, ...]] | None = None
    for size in range(min(buckets, len(prices))):
        for inner in combinations(range(last), size):
            cuts, total, low = (*inner, last), Fraction(0), 0
            for cut in cuts:
                total += prices[cut] * sum(counts[low : cut + 1])
                low = cut + 1
            if best is None or (total, cuts) < best:
                best = (total, cuts)
    assert best is not None
    return best


def brute_force(
    counts: dict[int, int], buckets: int, price: object, multiple: int = 1
) -> tuple[Fraction, tuple[int, ...]]:
    """Least cost and edges: one candidate for each distinct price, the longest length of that price."""
    ends: dict[Fraction, int] = {}
    sizes: dict[Fraction, int] = {}
    for value in sorted(counts):
        width = max(1, ceil(value / multiple)) * multiple
        own = Fraction(price(width))  # type: ignore[operator]
        ends[own] = max(1, value)
        sizes[own] = sizes.get(own, 0) + counts[value]
    cost, cuts = cheapest(list(ends), list(sizes.values()), buckets)
    return cost, tuple(list(ends.values())[cut] for cut in cuts)


PRICES = {
    "slots": (None, lambda width: width),
    "L + L^2 / 4, in quarters": (lambda w: 4 * w + w * w, lambda w: 4 * w + w * w),
    "L + L^2 / 4, in floats": (lambda w: w + 0.25 * w * w, lambda w: w + Fraction(w * w, 4)),  # exact in binary
    "tiles of 16": (lambda w: -(-w // 16), lambda w: -(-w // 16)),
    "free up to 7": (lambda w: np.maximum(w - 7, 0), lambda w: max(w - 7, 0)),
}


@settings(max_examples=150)
@pytest.mark.parametrize("name", PRICES)
@given(COUNTS | EQUAL_COUNTS, st.integers(1, 10))
def test_optimal_edges_equal_the_best_of_all_choices(name: str, counts: dict[int, int], buckets: int) -> None:
    cost, price = PRICES[name]
    found = optimal_edges(of(counts), buckets, cost=cost)
    wanted, edges = brute_force(counts, buckets, price)
    assert found.cost == wanted
    assert found.edges == edges
    assert found.curve is not None
    for k, least in enumerate(found.curve, start=1):
        assert least == brute_force(counts, k, price)[0]


@settings(max_examples=150)
@given(COUNTS | EQUAL_COUNTS, st.integers(1, 10), st.sampled_from([2, 5, 8, 64]))
def test_widths_are_rounded_up_before_they_are_costed(counts: dict[int, int], buckets: int, multiple: int) -> None:
    found = optimal_edges(of(counts), buckets, length_multiple=multiple)
    assert (found.cost, found.edges) == brute_force(counts, buckets, lambda width: width, multiple)


def test_ties_go_to_the_smallest_edges() -> None:
    # 1 2 3 once each, two buckets: (1, 3) costs 1 + 6 = 7, (2, 3) costs 4 + 3 = 7
    assert optimal_edges(lengths(1, 2, 3), 2).edges == (1, 3)
    # 1 .. 4: (1, 2, 4) 11, (1, 3, 4) 11, (2, 3, 4) 11; all cost 11
    assert optimal_edges(lengths(1, 2, 3, 4), 3).edges == (1, 2, 4)


def test_a_length_of_zero_costs_a_row_of_width_one() -> None:
    # 0 0 1 5: one bucket 4 * 5 = 20; edges (1, 5): 3 * 1 + 5 = 8; a bucket for 0 alone would save nothing
    found = optimal_edges(lengths(0, 0, 1, 5), 5)
    assert (found.edges, found.curve) == ((1, 5), (20, 8))
    # with no length 1, the bucket of the zeros ends at 1
    assert optimal_edges(lengths(0, 0, 5), 5).edges == (1, 5)


def test_no_bucket_is_spent_where_the_price_is_the_same() -> None:
    # multiples of 8: 1 .. 8 cost 8, 9 .. 16 cost 16, so two buckets are all that can help
    found = optimal_edges(lengths(*range(1, 17)), 6, length_multiple=8)
    assert (found.edges, found.cost, found.asked) == ((8, 16), 8 * 8 + 8 * 16, 6)
    assert found.note == "6 buckets asked, 2 left: equal edges and empty buckets are merged."


@given(LENGTHS | FEW, st.integers(1, 12))
def test_the_curve_never_rises_and_the_optimum_is_never_above_quantiles(values: list[int], buckets: int) -> None:
    histogram = LengthHistogram.from_lengths(values)
    found = optimal_edges(histogram, buckets)
    assert found.curve is not None
    assert all(a > b for a, b in zip(found.curve, found.curve[1:], strict=False))  # each bucket saves something
    assert found.cost == found.curve[-1] == slots(values, found.edges)
    assert len(found.curve) == len(found.edges)
    assert found.cost <= slots(values, equal_quantile_edges(histogram, buckets).edges)


def slots(values: list[int], edges: tuple[int, ...]) -> int:
    return sum(next(edge for edge in edges if value <= edge) for value in values)


@settings(max_examples=200)
@given(COUNTS, st.integers(1, 10), st.integers(8, 17), st.randoms(use_true_random=False))
def test_float_costs_that_nearly_tie_still_give_edges_in_order(
    counts: dict[int, int], buckets: int, digits: int, random: object
) -> None:
    # a measured table, flat but for noise at the end of float precision
    histogram = of(counts)
    noise = sorted(random.random() for _ in range(histogram.distinct))  # type: ignore[attr-defined]
    found = optimal_edges(histogram, buckets, cost=lambda w: 1 + np.array(noise[: w.size]) * 10.0**-digits)
    assert found.edges[-1] == max(1, histogram.max)
    assert list(found.edges) == sorted(set(found.edges))
    assert found.curve is not None
    assert all(a >= b for a, b in zip(found.curve, found.curve[1:], strict=False))
    assert found.cost == pytest.approx(histogram.sequences, rel=1e-7)


def test_integer_costs_beyond_64_bits_do_not_wrap_around() -> None:
    # 1e12 * 1e6 + 4e12 * 1e7 = 4.1e19 > 2**63
    histogram = LengthHistogram(np.array([10**6, 2 * 10**6]), np.array([10**6, 10**7]))
    found = optimal_edges(histogram, 2, cost=lambda width: width**2)
    assert found.cost == pytest.approx(4.1e19, rel=1e-12)
    assert found.edges == (10**6, 2 * 10**6)


def test_edges_count_their_buckets() -> None:
    assert len(Edges(edges=(3, 5))) == 2
