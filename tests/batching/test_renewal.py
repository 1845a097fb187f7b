"""Rows of a batch in the long run, where the answer can be written down."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.renewal import rows_per_batch


def rows(lengths: list[int], counts: list[int], budget: int, max_rows: int = 65_536) -> float:
    return rows_per_batch(np.array(lengths), np.array(counts), budget, max_rows)


def test_equal_lengths_fill_the_budget() -> None:
    assert rows([7], [10], 30) == pytest.approx(4, rel=1e-3)
    assert rows([7], [10], 30, max_rows=3) == pytest.approx(3, rel=1e-3)


def test_one_row_at_a_time() -> None:
    assert rows([1, 9], [1, 1], 12, max_rows=1) == pytest.approx(1, rel=1e-3)
    assert rows([6, 9], [1, 1], 10) == pytest.approx(1, rel=1e-3)  # no two of them fit


def test_half_ones_half_twos_in_a_budget_of_two() -> None:
    # first 1: another 1 joins it half of the time, 3/2 rows on average, and the batch after starts with a 2, or with
    # anything; first 2: 1 row, and anything follows. With q the share of batches that start with a 1:
    # q = (1 - q) / 2 + q (0 + 1/2 * 1/2), so q = 2/5, and rows are 2/5 * 3/2 + 3/5 = 6/5
    assert rows([1, 2], [5, 5], 2) == pytest.approx(1.2, rel=1e-3)


def test_starts_that_take_turns_converge() -> None:
    # 9 of 10 are short (3), the others fill the budget alone (1000). A run of shorts ends at a long one, which is a
    # batch of its own: per long sequence there is one batch, and one run of shorts unless the next one is long too.
    # Runs are far shorter than the 333 that fit: rows = 10 / (1 + 0.9) per batch
    assert rows([3, 1000], [9, 1], 1000) == pytest.approx(10 / 1.9, rel=1e-3)


@pytest.mark.parametrize("budget", [700, 3500, 7000, 16_384])
def test_few_lengths_are_counted_to_the_event(budget: int) -> None:
    # 1 and 700, half each: k of the long fit only where the ones beside them fit too; the same, played out
    drawn = np.where(np.random.default_rng(1).random(400_000) < 0.5, 1, 700)
    sums, start, batches = np.concatenate(([0], np.cumsum(drawn))), 0, 0
    while start < drawn.size:
        start = int(np.searchsorted(sums, sums[start] + budget, side="right")) - 1
        batches += 1
    assert rows([1, 700], [1, 1], budget) == pytest.approx(drawn.size / batches, rel=0.005)
