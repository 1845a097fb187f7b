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
    assert (n.value, n.field.value) == (1000, "1000")
    n.field.value = "123"
    assert n.value == 123
    assert abs(n._grid[n.slider.value] - 123) <= 5


def test_a_value_between_two_steps_stays_as_typed():
    n = LogInt("n", 1, 1, 10**6)
    n.field.value = "777777"
    assert (n.value, n.field.value) == (777_777, "777777")


@pytest.mark.parametrize(("low", "high", "expected"), [(1, 50, 50), (200, 400, 200), (1, 1000, 100)])
def test_the_value_moves_inside_other_ends(low, high, expected):
    n = LogInt("n", 100, 1, 1000)
    n.set_range(low, high)
    assert (n.value, n.field.value, n._grid[0], n._grid[-1]) == (expected, str(expected), low, high)
    assert n._grid[n.slider.value] == expected


def test_one_callback_for_a_change():
    n, seen = LogInt("n", 10, 1, 1000), []
    n.observe(lambda change: seen.append(change["new"]), "value")
    n.slider.value += 7
    n.field.value = "500"
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [("16,384", 16384), (" 16 384 ", 16384), ("1_000", 1000), ("1e4", 10000), ("+7", 7), ("2.0", 2)],
)
def test_a_number_is_taken_as_people_write_it(text, expected):
    n = LogInt("n", 10, 1, 100_000)
    n.field.value = text
    assert (n.value, n.field.value, n.problem.value) == (expected, str(expected), "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2.5", "2.5 is not a whole number. 10 stays."),
        ("abc", "&#x27;abc&#x27; is not a whole number. 10 stays."),
        ("", "&#x27;&#x27; is not a whole number. 10 stays."),
        ("1,2", "&#x27;1,2&#x27; is not a whole number. 10 stays."),
        ("1.000", "1.000 may be read in two ways: write it without the point. 10 stays."),
        ("-3", "-3 is not within 1 to 1,000. 10 stays."),
        ("0", "0 is not within 1 to 1,000. 10 stays."),
        ("1e9", "1e9 is not within 1 to 1,000. 10 stays."),
        ("1e99", "1e99 is not within 1 to 1,000. 10 stays."),
        ("<b>1</b>", "&#x27;&lt;b&gt;1&lt;/b&gt;&#x27; is not a whole number. 10 stays."),
    ],
)
def test_what_cannot_be_taken_is_said_and_the_number_stays(text, said):
    n = LogInt("n", 10, 1, 1000)
    n.field.value = text
    assert (n.value, n.field.value) == (10, text)  # to be mended
    assert said in n.problem.value
    assert "labkit-wrong" in n.field._dom_classes
    for mended in ("10", "11"):
        n.field.value = mended
        assert (n.value, n.problem.value, n.problem.layout.display) == (int(mended), "", "none")
        assert "labkit-wrong" not in n.field._dom_classes
    n.field.value = text
    n.slider.value = n.slider.max
    assert (n.field.value, n.problem.value) == ("1000", "")


def test_a_number_above_the_slider_may_be_typed_where_that_is_allowed():
    n = LogInt("n", 10, 1, 1000, most=10**6)
    n.field.value = "5000"
    assert (n.value, n.slider.value) == (5000, n.slider.max)
    n.field.value = "2000000"
    assert n.value == 5000
    assert "not within 1 to 1,000,000" in n.problem.value
