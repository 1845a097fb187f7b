"""Generated lengths against the closed forms of their laws; no draw outside its bounds, whatever the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LengthsError
from labkit.lengths.generate import Constant, Lognormal, PowerLaw, lognormal, mixture, power_law
from labkit.lengths.validate import MAX_LENGTH

N = 200_000
# Kolmogorov: P(sqrt(n) D > 1.95) < 0.001 for a continuous law, and less for a discrete one
KS_BOUND = 1.95 / math.sqrt(N)


def power_tail(k: np.ndarray[Any, Any], alpha: float, low: int, high: int) -> np.ndarray[Any, Any]:
    """P(length >= k) of the bounded power law."""
    s = alpha - 1
    return (k ** -s - (high + 1.0) ** -s) / (low ** -s - (high + 1.0) ** -s)  # fmt: skip


def distance(lengths: np.ndarray[Any, Any], tail: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> float:
    """Largest gap between the empirical and the stated P(length >= k), over all lengths drawn."""
    k, counts = np.unique(lengths, return_counts=True)
    empirical = 1 - np.concatenate([[0], np.cumsum(counts)[:-1]]) / lengths.size
    return float(np.max(np.abs(empirical - tail(k.astype(np.float64)))))


@pytest.mark.parametrize(
    ("alpha", "low", "high"),
    [(1.5, 1, 1000), (2.2, 1, 4096), (1.0001, 1, 50), (3.0, 20, 737), (1.8, 1, MAX_LENGTH)],
)
def test_a_power_law_has_its_closed_tail(alpha: float, low: int, high: int) -> None:
    lengths = power_law(N, alpha=alpha, min_length=low, max_length=high, seed=7)
    assert distance(lengths, lambda k: power_tail(k, alpha, low, high)) < KS_BOUND
    # the test can fail: a slightly other exponent is seen
    assert distance(lengths, lambda k: power_tail(k, alpha + 0.05, low, high)) > KS_BOUND


def test_quantiles_of_a_power_law_are_those_of_its_tail() -> None:
    # alpha 2, max 99: P(length >= k) = (1/k - 1/100) / (1 - 1/100), so P(length >= 2) = 0.4949, >= 10: 0.0909
    lengths = power_law(N, alpha=2, max_length=99, seed=1)
    assert np.mean(lengths >= 2) == pytest.approx(0.49 / 0.99, abs=0.005)
    assert np.mean(lengths >= 10) == pytest.approx(0.09 / 0.99, abs=0.005)
    assert np.median(lengths) == 1


def test_a_lognormal_has_its_stated_distribution() -> None:
    lengths = lognormal(N, median=20, sigma=0.9, max_length=400, seed=3)

    def tail(k: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        normal = np.array([0.5 * math.erfc(math.log((x - 0.5) / 20) / 0.9 / math.sqrt(2)) for x in k])
        return np.where(k <= 1, 1.0, normal)

    assert distance(lengths, tail) < KS_BOUND
    assert np.median(lengths) == pytest.approx(20, abs=1)
    assert lengths.max() == 400
    # P(z > ln(399.5 / 20) / 0.9) is what piles up at the cap
    assert np.mean(lengths == 400) == pytest.approx(0.5 * math.erfc(math.log(399.5 / 20) / 0.9 / 2**0.5), abs=3e-4)


def test_zero_and_cap_shares_are_those_asked_for() -> None:
    lengths = power_law(N, alpha=1.7, max_length=10_000, zero_share=0.3, cap_share=0.2, seed=5)
    assert np.mean(lengths == 0) == pytest.approx(0.3, abs=0.005)
    # the law itself puts next to nothing at the cap
    assert np.mean(lengths == 10_000) == pytest.approx(0.2, abs=0.005)
    rest = lengths[(lengths > 0) & (lengths < 10_000)]
    assert distance(rest, lambda k: power_tail(k, 1.7, 1, 10_000)) < 1.95 / math.sqrt(rest.size)
    assert np.mean(lognormal(N, median=9, sigma=1, max_length=99, zero_share=0.4) == 0) == pytest.approx(0.4, abs=0.005)


def test_all_zero_and_all_capped_are_possible() -> None:
    assert power_law(5, alpha=2, max_length=9, zero_share=1.0).tolist() == [0] * 5
    assert power_law(5, alpha=2, max_length=9, cap_share=1.0).tolist() == [9] * 5


def test_weights_of_a_mixture_are_relative() -> None:
    parts = [
        Lognormal(weight=70, median=8, sigma=0.5, max_length=100),
        Constant(weight=30, length=512),
        PowerLaw(weight=0, alpha=2, max_length=7),
    ]
    lengths = mixture(N, parts=parts, seed=11)
    assert np.mean(lengths == 512) == pytest.approx(0.3, abs=0.005)
    assert np.median(lengths[lengths < 512]) == pytest.approx(8, abs=1)
    tiny = [Constant(length=1, weight=7e-300), Constant(length=2, weight=3e-300)]
    huge = [Constant(length=1, weight=7e307), Constant(length=2, weight=3e307)]
    np.testing.assert_array_equal(mixture(1000, parts=tiny), mixture(1000, parts=huge))


@pytest.mark.parametrize("n", [1, 65_535, 65_536, 65_537, 200_000])
def test_a_seed_fixes_the_array_and_its_beginning(n: int) -> None:
    first = power_law(n, alpha=1.6, max_length=500, zero_share=0.1, seed=4)
    np.testing.assert_array_equal(first, power_law(n, alpha=1.6, max_length=500, zero_share=0.1, seed=4))
    assert first.shape == (n,)
    assert first.dtype == np.int32
    assert n == 1 or not np.array_equal(first, power_law(n, alpha=1.6, max_length=500, zero_share=0.1, seed=5))


@given(
    alpha=st.floats(1, 1e9, exclude_min=True),
    bounds=st.tuples(st.integers(1, MAX_LENGTH), st.integers(1, MAX_LENGTH)),
    seed=st.integers(0, 2**64),
)
def test_no_power_law_leaves_its_bounds_or_overflows(alpha: float, bounds: tuple[int, int], seed: int) -> None:
    low, high = min(bounds), max(bounds)
    lengths = power_law(300, alpha=alpha, min_length=low, max_length=high, seed=seed)
    assert low <= lengths.min()
    assert lengths.max() <= high
    assert lengths.sum(dtype=np.int64) >= 300 * low


@given(
    median=st.floats(1e-300, 1e300),
    sigma=st.floats(0, 1e6),
    bounds=st.tuples(st.integers(1, MAX_LENGTH), st.integers(1, MAX_LENGTH)),
)
def test_no_lognormal_leaves_its_bounds_or_overflows(median: float, sigma: float, bounds: tuple[int, int]) -> None:
    low, high = min(bounds), max(bounds)
    lengths = lognormal(300, median=median, sigma=sigma, min_length=low, max_length=high)
    assert low <= lengths.min()
    assert lengths.max() <= high


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 1.0}, "alpha must be a finite number above 1: got 1.0. Real logs lie between 1.5 and 3."),
        ({"alpha": 0.5}, "alpha must be a finite number above 1: got 0.5. Real logs lie between 1.5 and 3."),
        ({"alpha": math.nan}, "alpha must be a finite number above 1: got nan. Real logs lie between 1.5 and 3."),
        ({"alpha": math.inf}, "alpha must be a finite number above 1: got inf. Real logs lie between 1.5 and 3."),
        ({"max_length": 4, "min_length": 5}, "max_length must be min_length or more: got 4 < 5."),
        ({"max_length": 2**31}, "max_length must be a whole number within 1 .. 2147483647: got 2147483648."),
        ({"max_length": 9.5}, "max_length must be a whole number: got 9.5."),
        ({"min_length": 0}, "min_length must be a whole number within 1 .. 2147483647: got 0."),
        ({"n": 0}, "n must be a whole number within 1 .. 1099511627776: got 0."),
        ({"n": True}, "n must be a whole number within 1 .. 1099511627776: got True."),
        ({"n": 10.0}, "n must be a whole number: got 10.0."),
        ({"zero_share": -0.1}, "zero_share must lie within 0 .. 1: got -0.1."),
        ({"cap_share": 1.1}, "cap_share must lie within 0 .. 1: got 1.1."),
        ({"zero_share": math.nan}, "zero_share must lie within 0 .. 1: got nan."),
        ({"zero_share": 0.7, "cap_share": 0.6}, "zero_share + cap_share must not exceed 1: got 1.3."),
    ],
    ids=str,
)
def test_a_power_law_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"n": 10, "alpha": 2.0, "max_length": 100} | changes
    with pytest.raises(LengthsError) as refused:
        power_law(arguments.pop("n"), **arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lognormal(5, median=0, sigma=1, max_length=9), "median must be a finite number above 0: got 0."),
        (
            lambda: lognormal(5, median=3, sigma=-1, max_length=9),
            "sigma must be a finite number, 0 or more: got -1.",
        ),
        (lambda: Constant(length=-1), "length must be a whole number within 0 .. 2147483647: got -1."),
        (lambda: Constant(length=1, weight=-2), "weight must be a finite number, 0 or more: got -2."),
        (lambda: mixture(5, parts=[]), "a mixture needs a part with a weight above 0: got 0 parts."),
        (
            lambda: mixture(5, parts=[Constant(length=1, weight=0)]),
            "a mixture needs a part with a weight above 0: got 1 parts.",
        ),
    ],
)
def test_other_laws_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(LengthsError) as refused:
        make()
    assert str(refused.value) == message
