"""Shares of the regimes, by hand."""

from __future__ import annotations

import numpy as np

from labkit.experiments.regime_shares import regime_shares
from labkit.lengths.histogram import LengthHistogram


def test_shares_are_counted_at_the_thresholds_upper_inclusive() -> None:
    histogram = LengthHistogram(np.array([0, 4, 5, 8, 20]), np.array([2, 3, 1, 1, 1]))
    short, medium, long, giant = regime_shares(histogram, (4, 8, 16))
    assert (short.sequences, medium.sequences, long.sequences, giant.sequences) == (5, 2, 0, 1)
    assert (short.events, medium.events, long.events, giant.events) == (12, 13, 0, 20)
    assert short.sequence_share == 5 / 8
    assert giant.event_share == 20 / 45
    assert [(s.above, s.most) for s in (short, medium, long, giant)] == [(-1, 4), (4, 8), (8, 16), (16, None)]


def test_a_regime_that_its_thresholds_leave_out_has_no_rows() -> None:
    shares = regime_shares(LengthHistogram(np.array([1, 9]), np.array([1, 1])), (4, 4, 4))
    assert [share.sequences for share in shares] == [1, 0, 0, 1]


def test_without_events_there_is_no_share_of_them() -> None:
    shares = regime_shares(LengthHistogram(np.array([0]), np.array([3])), (1, 2, 3))
    assert [share.event_share for share in shares] == [None] * 4
