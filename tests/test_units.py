"""Numbers for people: three digits, the right unit at every step, and never a zero that is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.units import GB, GIB, counted, format_bytes, format_count, format_seconds, format_share, shown


def test_the_two_giga_are_apart() -> None:
    assert (GB, GIB) == (1_000_000_000, 1_073_741_824)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (943, "943"),
        (9_999, "9 999"),
        (9_999.94, "9 999.9"),
        (9_999.96, "10.0 k"),
        (10_000, "10.0 k"),
        (12_345, "12.3 k"),
        (99_949, "99.9 k"),
        (99_951, "100 k"),
        (999_499, "999 k"),
        (999_500, "1.00 M"),
        (1_469_307, "1.47 M"),
        (20_000_000, "20.0 M"),
        (999_600_000, "1.00 G"),
        (3 * 10**12, "3.00 T"),
        (12.5, "12.5"),
        (-1_469_307, "-1.47 M"),
        (-12, "-12"),
    ],
)
def test_a_count_is_written_with_three_digits(value: float, text: str) -> None:
    assert format_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"),
        (1e-9, "< 0.01 %"),
        (-1e-9, "> -0.01 %"),
        (0.0001, "0.01 %"),
        (0.0087, "0.87 %"),
        (0.3412, "34.1 %"),
        (0.99949, "99.9 %"),
        (0.99999, "> 99.9 %"),
        (1, "100.0 %"),
        (-0.25, "-25.0 %"),
        (1.5, "150.0 %"),
    ],
)
def test_a_share_is_a_percentage_that_rounds_to_no_false_extreme(value: float, text: str) -> None:
    assert format_share(value) == text


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_share_between_the_extremes_never_reads_as_one(share: float) -> None:
    assert format_share(share) not in ("0 %", "0.00 %", "100.0 %")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_994, "999.99 kB"),
        (999_999, "1.00 MB"),
        (1.5e9, "1.50 GB"),
        (GIB, "1.07 GB"),
        (141e9, "141.00 GB"),
        (2e12, "2.00 TB"),
        (-1.5e9, "-1.50 GB"),
    ],
)
def test_bytes_are_decimal(value: float, text: str) -> None:
    assert format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"),
        (3e-8, "30 ns"),
        (1.234e-6, "1.23 us"),
        (0.0123, "12.3 ms"),
        (0.9996, "1.00 s"),
        (0.9994, "999 ms"),
        (61.7, "61.7 s"),
        (12_345, "12345 s"),
    ],
)
def test_seconds_have_three_digits(value: float, text: str) -> None:
    assert format_seconds(value) == text


@given(st.integers(0, 10**15))
def test_no_unit_is_left_with_a_thousand_of_itself(value: int) -> None:
    for text in (format_count(value), format_bytes(value)):
        number = re.fullmatch(r"([\d. ]+?) ?([kMGT]?B?)", text)
        assert number is not None
        digits, unit = float(number[1].replace(" ", "")), number[2]
        assert digits < 1000 or unit in ("", "T", "TB")


def test_what_is_echoed_is_no_longer_than_a_line_can_bear() -> None:
    assert [shown(value) for value in ("many", 3, None, "é")] == ["'many'", "3", "None", "'é'"]
    assert shown("x" * 500) == "'" + "x" * 59 + "...'"
    assert shown(10**100) == "1" + "0" * 59 + "..."
    assert shown(10**5000) == "a number of thousands of digits"
    assert shown("a b", most=2) == "'a...'"


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "pack", "1 pack"),
        (0, "step", "0 steps"),
        (2, "strategy", "2 strategies"),
        (1, "strategy", "1 strategy"),
        (1200, "batch", "1,200 batches"),
    ],
)
def test_one_of_a_thing_is_no_plural(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
