"""LengthHistogram against the same figures computed on the expanded lengths."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LengthsError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH

LENGTHS = st.lists(st.integers(0, 40) | st.integers(0, 5000), min_size=1, max_size=60)
SHARES = st.floats(0, 1, allow_nan=False)


def of(*lengths: int) -> LengthHistogram:
    return LengthHistogram.from_lengths(np.array(lengths))


def assert_counts(histogram: LengthHistogram, values: list[int], counts: list[int]) -> None:
    assert histogram.values.tolist() == values
    assert histogram.counts.tolist() == counts
    assert histogram.values.dtype == histogram.counts.dtype == np.int64


# --- counting


def test_lengths_are_counted_with_zero_among_them() -> None:
    assert_counts(of(3, 1, 3, 0), [0, 1, 3], [1, 1, 2])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, ">i8", np.uint64, np.float32, np.float64])
def test_every_numeric_type_counts_alike(dtype: str) -> None:
    assert_counts(LengthHistogram.from_lengths(np.array([2, 7, 2], dtype=dtype)), [2, 7], [2, 1])


def test_the_longest_legal_length_is_counted_without_a_table_of_that_size() -> None:
    assert_counts(of(MAX_LENGTH, 0, MAX_LENGTH), [0, MAX_LENGTH], [1, 2])


def test_more_lengths_than_one_chunk_are_all_counted() -> None:
    lengths = np.tile(np.arange(7, dtype=np.int32), 300_001)
    assert_counts(LengthHistogram.from_lengths(lengths), list(range(7)), [300_001] * 7)


@given(LENGTHS)
def test_sums_are_those_of_the_lengths(lengths: list[int]) -> None:
    histogram = of(*lengths)
    assert histogram.sequences == len(lengths)
    assert histogram.events == sum(lengths)
    assert histogram.max == max(lengths)
    assert histogram.mean == sum(lengths) / len(lengths)
    assert histogram.distinct == len(set(lengths))
    np.testing.assert_array_equal(histogram.expand(), np.sort(lengths))
    assert histogram.expand().dtype == np.int32


@given(LENGTHS)
def test_prefix_sums_count_what_is_shorter_than_each_value(lengths: list[int]) -> None:
    histogram = of(*lengths)
    for i, value in enumerate(histogram.values):
        shorter = [length for length in lengths if length < value]
        assert histogram.count_sums[i] == len(shorter)
        assert histogram.event_sums[i] == sum(shorter)
    assert histogram.count_sums[-1] == len(lengths)
    assert histogram.event_sums[-1] == sum(lengths)


def test_values_given_in_any_order_come_out_sorted_with_their_counts() -> None:
    assert_counts(LengthHistogram(np.array([9, 2]), np.array([1, 5])), [2, 9], [5, 1])


def test_the_arrays_are_read_only_and_apart_from_the_callers() -> None:
    values, counts = np.array([1, 2]), np.array([3, 4])
    histogram = LengthHistogram(values, counts)
    for array in (histogram.values, histogram.counts, histogram.count_sums, histogram.event_sums):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    values[0], counts[0] = 5, 6
    assert_counts(histogram, [1, 2], [3, 4])


def test_counts_of_quadrillions_sum_exactly() -> None:
    # 3 * 10**18 + 10**15 + 1 has no float64 of its own
    histogram = LengthHistogram(np.array([1, 1000]), np.array([10**15 + 1, 3 * 10**15]))
    assert histogram.sequences == 4 * 10**15 + 1
    assert histogram.events == 3 * 10**18 + 10**15 + 1
    assert histogram.quantile(0.2) == 1
    assert histogram.quantile(0.9) == 1000


# --- statistics


@given(LENGTHS, SHARES | st.sampled_from([0.0, 0.25, 0.5, 0.95, 0.99, 1.0]))
def test_quantiles_equal_those_of_numpy_to_the_last_bit(lengths: list[int], q: float) -> None:
    histogram = of(*lengths)
    expected = np.quantile(np.repeat(histogram.values, histogram.counts), q)
    assert histogram.quantile(q) == float(expected)
    assert histogram.quantiles([q, q]) == [float(expected)] * 2


@pytest.mark.parametrize("q", [-0.1, 1.01, float("nan")])
def test_a_quantile_outside_0_to_1_is_refused(q: float) -> None:
    with pytest.raises(LengthsError) as refused:
        of(1, 2).quantile(q)
    assert str(refused.value) == f"quantiles must lie within 0 .. 1: got [{q}]."


@given(LENGTHS)
def test_gini_is_half_the_relative_mean_difference_of_all_pairs(lengths: list[int]) -> None:
    array = np.array(lengths, dtype=np.float64)
    pairs = np.abs(array[:, None] - array[None, :]).sum()
    expected = pairs / (2 * len(lengths) ** 2 * array.mean()) if array.sum() else 0.0
    assert of(*lengths).gini == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_gini_is_0_for_equal_lengths_and_near_1_for_one_rich_user() -> None:
    assert of(5, 5, 5).gini == 0
    assert of(0, 0, 0).gini == 0
    assert of(*[0] * 99, 700).gini == pytest.approx(0.99)  # 1 - 1/N


# --- derived


@given(LENGTHS, st.integers(0, 5000))
def test_capping_is_the_minimum_with_the_cap(lengths: list[int], cap: int) -> None:
    assert of(*lengths).capped(cap) == of(*np.minimum(lengths, cap).tolist())


def test_a_cap_that_cuts_nothing_gives_the_histogram_itself() -> None:
    histogram = of(1, 4)
    assert histogram.capped(4) is histogram
    assert histogram.capped(None) is histogram


def test_a_negative_cap_is_refused() -> None:
    with pytest.raises(LengthsError) as refused:
        of(1, 4).capped(-3)
    assert str(refused.value) == "max_length must be 0 or more: got -3."


@given(LENGTHS, LENGTHS)
def test_merging_is_the_histogram_of_both(first: list[int], second: list[int]) -> None:
    assert of(*first).merge(of(*second)) == of(*first, *second)


@given(LENGTHS, st.randoms(use_true_random=False))
def test_identity_is_independent_of_the_order_of_sequences(lengths: list[int], random: Random) -> None:
    shuffled = list(lengths)
    random.shuffle(shuffled)
    first, second = of(*lengths), of(*shuffled)
    assert first == second
    assert first.fingerprint == second.fingerprint
    assert hash(first) == hash(second)


def test_another_count_is_another_histogram() -> None:
    assert of(1, 2) != of(1, 2, 2)
    assert of(1, 2).fingerprint != of(1, 2, 2).fingerprint
    assert of(1, 2) != "1,2"


def test_the_fingerprint_is_the_sha256_of_its_lines() -> None:
    # printf '0,1\n3,2\n' | sha256sum
    assert of(3, 0, 3).fingerprint == "95917d082c4a74eed07f0d9e21a08af791551f0cb45204f7420e43aa45ebf7df"


def test_its_text_has_the_figures() -> None:
    assert repr(of(0, 1, 3)) == (
        "LengthHistogram(3 sequences, 4 events, mean 1.33, P50 1, P99 2.96, max 3, 3 distinct)"
    )


# --- refusals


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([], "lengths are empty: at least one sequence is needed."),
        ([[1, 2]], "lengths must be one-dimensional: got shape (1, 2). Pass one length per sequence."),
        ([4, -1, -2], "lengths[1] = -1 is negative; a sequence has 0 events or more (2 such values). "),
        ([1.0, float("nan")], "lengths[1] = nan is not a finite number. "),
        ([float("inf")], "lengths[0] = inf is not a finite number. "),
        ([1.0, 2.5], "lengths[1] = 2.5 is not a whole number. "),
        ([7, 2**31], "lengths[1] = 2147483648 is above 2**31 - 1 = 2147483647. "),
        ([1e300], "lengths[0] = 1e+300 is outside 0 .. 2**31 - 1 = 2147483647. "),
        (["a"], "lengths must be whole numbers: got dtype <U1. Convert them to integers first."),
        ([True], "lengths must be whole numbers: got dtype bool. Convert them to integers first."),
    ],
    ids=lambda value: str(value)[:24],
)
def test_lengths_that_cannot_be_are_refused(lengths: list[object], message: str) -> None:
    with pytest.raises(LengthsError) as refused:
        LengthHistogram.from_lengths(np.array(lengths))
    ending = "Fix or filter the input." if message.endswith(" ") else ""
    assert str(refused.value) == message + ending


@pytest.mark.parametrize(
    ("values", "counts", "message"),
    [
        ([1, 2], [1], "a histogram needs one count per length: got 2 lengths, 1 counts."),
        ([1, 2], [1, 0], "histogram count of length 2 is 0: every count must be 1 or more. Leave the line out."),
        ([1, 2], [-4, 1], "histogram count of length 1 is -4: every count must be 1 or more. Leave the line out."),
        ([1, 2], [1.5, 1], "histogram counts must be whole numbers: got dtype float64."),
        ([3, 3], [1, 1], "histogram length 3 appears twice: give each length once, with its total count."),
        ([1], [2**63], "histogram count 9223372036854775808 does not fit 64 bits."),
        (
            [2**31 - 1],
            [2**40],
            (
                "histogram too large: 1.1e+12 sequences of up to 2147483647 events do not fit 64-bit sums. "
                "Scale the counts down."
            ),
        ),
    ],
    ids=["shape", "zero", "negative", "fractional", "repeated", "uint64", "too large"],
)
def test_histograms_that_cannot_be_are_refused(values: list[int], counts: list[int], message: str) -> None:
    with pytest.raises(LengthsError) as refused:
        LengthHistogram(np.array(values), np.array(counts))
    assert str(refused.value) == message
