"""E[longest of a batch] against exact fractions, against every possible batch, and at the scale of 20 million."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.expected_max import expected_max

COUNTS = st.dictionaries(st.integers(0, 90), st.integers(1, 25), min_size=1, max_size=8)


def found(values: list[int], counts: list[int], rows: int) -> float:
    return expected_max(np.array(values, dtype=np.int64), np.cumsum(counts), rows)


def exact(values: list[int], counts: list[int], rows: int) -> Fraction:
    """sum of v_i (C(N_i, rows) - C(N_{i-1}, rows)) / C(N, rows)."""
    total, expected, below = math.comb(sum(counts), rows), Fraction(0), 0
    for i, value in enumerate(values):
        now = math.comb(sum(counts[: i + 1]), rows)
        expected += value * Fraction(now - below, total)
        below = now
    return expected


@settings(max_examples=200)
@given(COUNTS, st.data())
def test_it_equals_the_exact_fraction(counts: dict[int, int], data: st.DataObject) -> None:
    values = sorted(counts)
    numbers = [counts[v] for v in values]
    rows = data.draw(st.integers(1, sum(numbers)))
    assert found(values, numbers, rows) == pytest.approx(float(exact(values, numbers, rows)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7])
def test_it_equals_the_mean_over_every_batch(rows: int) -> None:
    lengths = [0, 1, 1, 4, 9, 9, 30]
    every = [max(batch) for batch in combinations(lengths, rows)]
    assert found([0, 1, 4, 9, 30], [1, 2, 1, 2, 1], rows) == pytest.approx(sum(every) / len(every), rel=1e-14)


def test_two_of_three() -> None:
    # 1 2 3: {1,2} {1,3} {2,3} have the maxima 2 3 3
    assert found([1, 2, 3], [1, 1, 1], 2) == pytest.approx(8 / 3, rel=1e-15)


def test_one_draw_is_the_mean_and_all_draws_are_the_longest() -> None:
    assert found([1, 2, 9], [5, 3, 2], 1) == pytest.approx(2.9, rel=1e-15)
    assert found([1, 2, 9], [5, 3, 2], 10) == 9.0
    assert found([4], [5], 3) == 4.0


def test_lengths_rounded_up_may_repeat() -> None:
    assert found([8, 8, 16], [2, 3, 1], 2) == pytest.approx(found([8, 16], [5, 1], 2), rel=1e-14)


@given(COUNTS)
def test_more_draws_never_lower_it(counts: dict[int, int]) -> None:
    values = sorted(counts)
    numbers = [counts[v] for v in values]
    curve = [found(values, numbers, rows) for rows in range(1, sum(numbers) + 1)]
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(curve))
    assert curve[-1] == values[-1]


# --- at scale: rational arithmetic on whole numbers of a hundred thousand digits


def power_law(distinct: int, total: int) -> tuple[list[int], list[int]]:
    values = list(range(1, distinct + 1))
    counts = [max(1, int(total * 0.5 / v**1.9)) for v in values]
    counts[0] += total - sum(counts)
    return values, counts


def by_whole_numbers(values: list[int], counts: list[int], rows: int) -> float:
    """P_i = (N_i)_r / (N)_r, falling factorials; to 2**-200."""
    total, scale, n = sum(counts), 1 << 200, 0
    bottom, expected = math.perm(total, rows), values[-1] * scale
    for value, after, count in zip(values, values[1:], counts, strict=False):
        n += count
        expected -= (after - value) * (math.perm(n, rows) * scale // bottom)
    return float(Fraction(expected, scale))


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 256, 4096])
def test_twenty_million_sequences_keep_nine_digits(rows: int) -> None:
    values, counts = power_law(40, 20_000_000)
    assert sum(counts) == 20_000_000
    assert found(values, counts, rows) == pytest.approx(by_whole_numbers(values, counts, rows), rel=1e-9)


@pytest.mark.parametrize("left", [0, 1, 3, 17, 10_000_000, 19_999_000])
def test_batches_of_almost_everything_keep_nine_digits(left: int) -> None:
    # 20 million less a few rows; the longest are so rare that they may be among the few left out:
    # C(N_i, r) / C(N, r) = (N - r)(N - r - 1) .. / N (N - 1) .., as many factors as there are longer sequences
    values, counts = [1, 5, 50, 900], [20_000_000 - 111, 100, 10, 1]
    total = sum(counts)
    rows = total - left
    expected, n = Fraction(values[-1]), 0
    for value, after, count in zip(values, values[1:], counts, strict=False):
        n += count
        longer = total - n
        expected -= (after - value) * Fraction(math.perm(left, longer), math.perm(total, longer))
    assert found(values, counts, rows) == pytest.approx(float(expected), rel=1e-9)
