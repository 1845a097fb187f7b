from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.widgets.log_int import LogInt, grid


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_grid_rises_and_has_both_ends(a, b):
    low, high = min(a, b), max(a, b)
    steps = grid(low, high)
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (low, high)
    assert len(steps) <= 162


def test_slider_and_field_follow_each_other():
    n = LogInt("n", 10, 1, 1000)
    n.slider.value = n.slider.max
    assert (n.value, n.field.value) == (1000, 1000)
    n.field.value = 123
    assert n.value == 123
    assert abs(n._grid[n.slider.value] - 123) <= 5


def test_a_value_between_two_steps_stays_as_typed():
    n = LogInt("n", 1, 1, 10**6)
    n.field.value = 777_777
    assert (n.value, n.field.value) == (777_777, 777_777)


@pytest.mark.parametrize(("low", "high", "expected"), [(1, 50, 50), (200, 400, 200), (1, 1000, 100)])
def test_the_value_moves_inside_other_ends(low, high, expected):
    n = LogInt("n", 100, 1, 1000)
    n.set_range(low, high)
    assert (n.value, n.field.value, n.field.min, n.field.max) == (expected, expected, low, high)
    assert n._grid[n.slider.value] == expected


def test_one_callback_for_a_change():
    n, seen = LogInt("n", 10, 1, 1000), []
    n.observe(lambda change: seen.append(change["new"]), "value")
    n.slider.value += 7
    n.field.value = 500
    assert len(seen) == 2
