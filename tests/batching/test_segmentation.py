"""The dynamic program on sizes that every round of it is passed through, against the plain one of O(K m^2)."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.segmentation import cheapest_cuts


def plain(prices: np.ndarray, sums: np.ndarray, buckets: int) -> tuple[list[int], list[int]]:
    """Curve and lexicographically smallest cuts by the textbook program, in Python integers."""
    m = len(prices)
    price, total = [0, *map(int, prices)], [0, *map(int, sums)]
    best = [(price[j] * total[j], (j - 1,)) for j in range(m + 1)]
    curve = [best[m][0]]
    for _ in range(1, buckets):
        best = [best[0]] + [
            min((best[i][0] + price[j] * (total[j] - total[i]), (*best[i][1], j - 1)) for i in range(1, j))
            if j > 1
            else best[1]
            for j in range(1, m + 1)
        ]
        curve.append(best[m][0])
    return curve, list(best[m][1])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64])
@pytest.mark.parametrize("seed", [0, 1])
def test_cuts_and_curve_equal_the_plain_program(size: int, seed: int) -> None:
    rng = np.random.default_rng((size, seed))
    prices = np.cumsum(rng.integers(1, 4, size))
    sums = np.cumsum(rng.integers(1, 3, size))  # small counts, so that ties are frequent
    buckets = min(size, 6)
    found = cheapest_cuts(prices, sums, buckets)
    curve, cuts = plain(prices, sums, buckets)
    assert found.curve.tolist() == curve
    assert found.cuts.tolist() == cuts


def test_as_many_buckets_as_lengths_leave_no_padding() -> None:
    prices, counts = np.arange(1, 300), np.full(299, 7)
    found = cheapest_cuts(prices, np.cumsum(counts), 299)
    assert found.cuts.tolist() == list(range(299))
    assert found.curve[-1] == int((prices * counts).sum())


def test_sums_at_the_limit_of_64_bits_are_exact() -> None:
    # 2 * 2**61 - 2 * 2 in one bucket, in Python integers
    prices, sums = np.array([2**30, 2**31 - 1]), np.array([2**30, 2**31 - 2])
    found = cheapest_cuts(prices, sums, 2)
    assert found.curve.tolist() == [(2**31 - 1) * (2**31 - 2), 2**60 + (2**31 - 1) * (2**30 - 2)]
