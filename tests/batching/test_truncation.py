"""Truncation keeps the most recent events, and always counts both users and events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.truncation import cap_loss, lowest_cap, recent
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from tests.batching.draws import LENGTHS


@pytest.mark.parametrize(("n", "kept"), [(2, [2, 3]), (0, []), (5, [1, 2, 3]), (3, [1, 2, 3]), (1, [3])])
def test_the_newest_events_are_kept(n: int, kept: list[int]) -> None:
    assert recent([1, 2, 3], n) == kept
    assert recent((1, 2, 3), n) == tuple(kept)
    assert recent(np.array([1, 2, 3]), np.int64(n)).tolist() == kept


@pytest.mark.parametrize("n", [0, 1, 5])
def test_an_empty_history_stays_empty(n: int) -> None:
    assert recent([], n) == []


def test_rows_of_a_matrix_are_cut_and_stay_a_view() -> None:
    history = np.arange(6).reshape(3, 2)
    kept = recent(history, 2)
    assert kept.tolist() == [[2, 3], [4, 5]]
    assert kept.base is history.base


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (-1, "n must be 0 or more: got -1."),
        (1.0, "n must be a whole number: got 1.0 (float)."),
        (True, "n must be a whole number: got True (bool)."),
    ],
)
def test_a_negative_or_broken_number_of_events_is_refused(n: object, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        recent([1, 2, 3], n)
    assert str(caught.value) == message


@given(st.lists(st.integers()), st.integers(0, 60))
def test_what_is_kept_is_the_end_of_the_history(history: list[int], n: int) -> None:
    kept = recent(history, n)
    assert len(kept) == min(n, len(history))
    assert history[: len(history) - len(kept)] + kept == history


def test_a_cap_counts_users_and_events() -> None:
    # 1 2 3 10 capped at 3: one user of four is cut, 7 of 16 events are lost
    loss = cap_loss(LengthHistogram.from_lengths([1, 2, 3, 10]), 3)
    assert (loss.sequences_truncated, loss.truncated_share) == (1, 0.25)
    assert (loss.kept_events, loss.events_lost, loss.lost_share) == (9, 7, 7 / 16)


@given(LENGTHS, st.none() | st.integers(0, 310))
def test_losses_are_those_of_the_lengths(lengths: list[int], cap: int | None) -> None:
    loss = cap_loss(LengthHistogram.from_lengths(lengths), cap)
    kept = lengths if cap is None else [min(cap, length) for length in lengths]
    assert loss.kept_events == sum(kept)
    assert loss.events_lost == sum(lengths) - sum(kept)
    assert loss.sequences_truncated == sum(k < n for k, n in zip(kept, lengths, strict=True))
    assert loss.truncated_share == loss.sequences_truncated / len(lengths)
    assert loss.lost_share == (loss.events_lost / sum(lengths) if sum(lengths) else 0)


@given(LENGTHS, st.floats(0, 1))
def test_the_lowest_cap_is_within_the_share_and_one_less_is_not(lengths: list[int], share: float) -> None:
    histogram = LengthHistogram.from_lengths(lengths)
    cap = lowest_cap(histogram, share)
    if cap is None:  # only the longest length itself would do
        assert share == 0 or histogram.max <= 1 or cap_loss(histogram, histogram.max - 1).lost_share > share
        return
    assert 1 <= cap < histogram.max
    assert cap_loss(histogram, cap).lost_share <= share
    assert cap == 1 or cap_loss(histogram, cap - 1).lost_share > share
