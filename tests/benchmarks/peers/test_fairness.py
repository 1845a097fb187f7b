"""The judge of edges and batches, on cases small enough to count by hand; no peer is needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from labkit.batching.edges import optimal_edges
from labkit.lengths.histogram import LengthHistogram
from tests.benchmarks.peers.data import DRAWN, REAL, data_set
from tests.benchmarks.peers.fairness import BatchFigures, below, covering, judge, padded_slots, tight, up_to

# lengths 1 1 2 5 9
HISTOGRAM = LengthHistogram(np.array([1, 2, 5, 9]), np.array([2, 1, 1, 1]))
LENGTHS = np.array([5, 1, 9, 2, 1], dtype=np.int32)


def test_boundaries_become_upper_inclusive_edges() -> None:
    assert up_to([1.0, 2.7, 8.9999999]) == [1, 2, 9]  # a length of 3 is above 2.7
    assert below([2.0, 5.5, 9.0000001]) == [1, 5, 8]  # from 2 on in the next bucket; 5 is below 5.5


@pytest.mark.parametrize(
    ("edges", "buckets", "expected"),
    [
        ([2, 5], 3, [2, 5, 9]),  # room for one more
        ([2, 5], 2, [2, 9]),  # no room: the last moves up
        ([2, 9], 2, [2, 9]),
        ([2, 12], 2, [2, 9]),  # never above the longest
        ([2, 2, 5], 3, [2, 5, 9]),  # equal ones make room
        ([], 1, [9]),
        ([5], 1, [9]),
    ],
)
def test_the_longest_is_the_last_of_at_most_k_edges(edges: Sequence[int], buckets: int, expected: list[int]) -> None:
    assert covering(edges, buckets, longest=9) == expected


def test_more_edges_than_were_asked_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^2 buckets allowed, 3 edges given$"):
        covering([1, 2, 5], 2, longest=9)


def test_edges_are_lowered_to_the_longest_of_their_bucket() -> None:
    assert tight([4, 8, 9], HISTOGRAM) == (2, 5, 9)
    assert tight([2, 4, 9], HISTOGRAM) == (2, 9)  # nothing between 2 and 4
    assert tight([0, 9], HISTOGRAM) == (9,)  # nothing up to 0


def test_slots_are_counted_by_bucket() -> None:
    assert padded_slots([2, 9], HISTOGRAM) == 2 * 3 + 9 * 2
    assert padded_slots([9], HISTOGRAM) == 9 * 5
    with pytest.raises(ValueError, match=r"^a length of 9 is above the last edge 5$"):
        padded_slots([2, 5], HISTOGRAM)


@pytest.mark.parametrize("buckets", [1, 2, 3, 8])
def test_the_judge_counts_what_the_optimum_says_it_costs(buckets: int) -> None:
    found = optimal_edges(HISTOGRAM, buckets)
    assert padded_slots(found.edges, HISTOGRAM) == found.cost


def test_batches_are_as_wide_as_their_longest() -> None:
    figures = judge([[0, 1], np.array([2, 3]), [], [4]], LENGTHS)
    # 2 x 5 + 2 x 9 + 1 x 1
    assert figures == BatchFigures(batches=3, slots=29, largest=18, events=18, missing=0, repeated=0)
    assert figures.padding_ratio == 1 - 18 / 29
    assert figures.covers
    assert (figures.over(18), figures.over(17), figures.over(100)) == (0, 1, 0)


def test_what_is_left_out_or_repeated_is_counted() -> None:
    figures = judge([[0, 1, 1], [1, 3]], LENGTHS)
    assert (figures.missing, figures.repeated) == (2, 1)
    assert not figures.covers
    nothing = judge([[]], LENGTHS)
    assert (nothing.batches, nothing.missing, nothing.padding_ratio) == (0, 5, 0.0)


@pytest.mark.parametrize("key", REAL + DRAWN)
def test_a_data_set_is_the_same_each_time_and_in_no_order(key: str) -> None:
    once, again = data_set(key, quick=True), data_set(key, quick=True)
    np.testing.assert_array_equal(once.lengths, again.lengths)
    assert once.histogram.events == once.lengths.sum()
    assert (np.diff(once.lengths[:1000]) < 0).any()


def test_an_unknown_data_set_is_named() -> None:
    with pytest.raises(ValueError, match=r"^no lengths are called 'x': use one of cdnow, "):
        data_set("x", quick=True)
