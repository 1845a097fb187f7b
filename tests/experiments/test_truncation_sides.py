from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import PolicyError
from labkit.experiments.truncation_sides import Side, cap_curve, default_caps
from labkit.lengths.histogram import LengthHistogram


def point(lengths, cap, epochs=1):
    return cap_curve(LengthHistogram.from_lengths(np.array(lengths)), [cap], epochs)[0]


def test_both_losses_are_those_of_the_cap():
    # [10, 2, 3] capped at 3: one of three users loses 7 of 15 events
    found = point([10, 2, 3], 3)
    assert (found.truncated_share, found.lost_share) == (1 / 3, 7 / 15)


def test_the_latest_event_is_always_kept_on_the_recent_side_never_on_the_other():
    found = point([10, 2, 3, 0], 3)  # three users have events, one of them is cut
    assert found.latest_share[Side.RECENT] == 3 / 4
    assert found.latest_share[Side.OLDEST] == 2 / 4
    assert (
        found.latest_share[Side.STOCHASTIC] == (2 + 1 / 8) / 4
    )  # 8 places for a window of 3 in 10, one has the latest


def test_one_epoch_of_a_random_window_misses_as_much_as_a_fixed_side():
    found = point([10, 4], 3)
    assert found.unseen_share[Side.STOCHASTIC] == pytest.approx(found.lost_share)


@given(st.integers(2, 12), st.integers(1, 12), st.integers(1, 3))
def test_events_never_seen_equal_the_enumeration_of_all_windows(length, cap, epochs):
    cap = min(cap, length)
    starts = range(length - cap + 1)
    covered = np.array([[start <= p < start + cap for p in range(length)] for start in starts]).mean(axis=0)
    wanted = float(((1 - covered) ** epochs).sum() / length)
    found = point([length], cap, epochs)
    assert found.unseen_share[Side.STOCHASTIC] == pytest.approx(wanted if cap < length else 0.0, abs=1e-12)


def test_a_cap_at_the_longest_cuts_nothing():
    found = point([5, 9], 9)
    assert (found.truncated_share, found.lost_share, *found.unseen_share.values()) == (0, 0, 0, 0, 0)
    assert set(found.latest_share.values()) == {1.0}


def test_default_caps_rise_to_the_longest():
    caps = default_caps(LengthHistogram.from_lengths(np.array([1, 500])))
    assert (caps[0], caps[-1]) == (4, 500)
    assert list(caps) == sorted(set(caps))
    assert default_caps(LengthHistogram.from_lengths(np.array([1, 1]))) == (1,)


def test_a_cap_of_zero_is_refused():
    with pytest.raises(PolicyError, match="max_length must be 1 or more: got 0"):
        point([3], 0)
