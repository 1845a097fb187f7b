"""A charge for each bucket: the number of buckets is chosen, against every number tried one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.edges import Edges, optimal_edges
from labkit.errors import EdgesError
from labkit.lengths import presets
from labkit.lengths.histogram import LengthHistogram
from tests.batching.draws import FEW, LENGTHS


def test_a_bucket_is_taken_while_it_saves_more_than_its_charge() -> None:
    # 1 2 10 once each: one bucket 30, two (2, 10) 4 + 10 = 14, three 13. The second saves 16, the third 1.
    histogram = LengthHistogram.from_lengths([1, 2, 10])
    found = optimal_edges(histogram, 3, charge_per_bucket=2)
    assert (found.edges, found.cost, found.curve) == ((2, 10), 14, (30, 14, 13))
    assert (found.total, found.charge_per_bucket, len(found)) == (18, 2, 2)
    assert found.note == "3 buckets allowed, 2 chosen: no further one saves more than its charge of 2."


def test_ties_go_to_fewer_buckets() -> None:
    histogram = LengthHistogram.from_lengths([1, 2, 10])
    assert optimal_edges(histogram, 3, charge_per_bucket=1).edges == (2, 10)  # 14 + 2 = 13 + 3
    assert optimal_edges(histogram, 3, charge_per_bucket=16).edges == (10,)  # 30 + 16 = 14 + 32
    assert optimal_edges(histogram, 3, charge_per_bucket=0.5).edges == (1, 2, 10)


def test_without_a_charge_every_bucket_is_used() -> None:
    found = optimal_edges(LengthHistogram.from_lengths([1, 2, 10]), 3)
    assert (found.edges, found.total, found.note) == ((1, 2, 10), 13, None)


@given(LENGTHS | FEW, st.integers(1, 9), st.integers(0, 400) | st.floats(0, 400))
def test_the_choice_is_the_best_of_every_number_of_buckets(values: list[int], buckets: int, charge: float) -> None:
    histogram = LengthHistogram.from_lengths(values)
    found = optimal_edges(histogram, buckets, charge_per_bucket=charge)
    each = [optimal_edges(histogram, k) for k in range(1, buckets + 1)]
    assert found.curve == each[-1].curve
    best = min(each, key=lambda e: (e.cost + charge * len(e), len(e)))
    assert (found.edges, found.cost) == (best.edges, best.cost)
    assert found.total == best.cost + charge * len(best)


def test_a_charge_beyond_64_bits_leaves_one_bucket() -> None:
    assert len(optimal_edges(presets.preset("cdnow"), 8, charge_per_bucket=10**30)) == 1


def test_a_numpy_charge_is_a_number() -> None:
    found = optimal_edges(LengthHistogram.from_lengths([1, 2, 10]), 3, charge_per_bucket=np.int64(2))  # type: ignore[arg-type]
    assert type(found.charge_per_bucket) is int


def test_edges_that_were_not_costed_have_no_total() -> None:
    assert Edges(edges=(3, 5)).total is None


@pytest.mark.parametrize(
    ("charge", "message"),
    [
        (-1, "charge_per_bucket must be a finite number of 0 or more: got -1."),
        (float("nan"), "charge_per_bucket must be a finite number of 0 or more: got nan."),
        (float("inf"), "charge_per_bucket must be a finite number of 0 or more: got inf."),
        ("3", "charge_per_bucket must be a number: got '3' (str)."),
    ],
)
def test_a_charge_that_is_none_is_refused(charge: object, message: str) -> None:
    with pytest.raises(EdgesError) as caught:
        optimal_edges(LengthHistogram.from_lengths([1]), 1, charge_per_bucket=charge)  # type: ignore[arg-type]
    assert str(caught.value) == message
