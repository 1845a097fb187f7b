"""E[longest of a batch]: the exact expectation over shuffles, for batches padded to their own longest row."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Below this argument the Stirling series of ln x! is not good to the last bits; a table takes over.
_SMALL = 16
_SMALL_LOG_FACTORIALS = np.array([math.lgamma(i + 1) for i in range(_SMALL)])


def expected_max(values: NDArray[np.int64], count_sums: NDArray[np.int64], rows: int) -> float:
    """Expected maximum of ``rows`` draws without replacement from a histogram.

        P(max <= v_i) = C(N_i, rows) / C(N, rows),    N_i = sequences of length <= v_i

    Args:
        values: (m,) int64 ascending (repeats allowed): the lengths, or any non-decreasing function of them.
        count_sums: (m,) int64: N_i, cumulative counts; the last is N.
        rows: number of draws, 1 <= rows <= N.

    Returns:
        sum_i v_i (P_i - P_{i-1}), unrounded; exact but for rounding (relative error about 1e-12).

    Cost: O(m), a handful of vectorized logarithms; well under a millisecond for 4096 lengths.
    Source: order statistics of sampling without replacement (hypergeometric).
    """
    first, at_most = law_of_max(count_sums, rows)
    # summation by parts: v_m - sum_i (v_{i+1} - v_i) P_i has no cancellation
    steps = np.diff(values[first:]).astype(np.float64)
    return float(values[-1]) - float(np.dot(steps, at_most[:-1]))


def law_of_max(count_sums: NDArray[np.int64], rows: int) -> tuple[int, NDArray[np.float64]]:
    """The first length i that can be the maximum of ``rows`` draws, and P(max <= v_j) for j = i .. m - 1, at last 1.

    Cost: O(m).
    """
    total = int(count_sums[-1])
    first = int(np.searchsorted(count_sums, rows))  # below, fewer than `rows` sequences: the probability is 0
    if rows == total or first == count_sums.size - 1:
        return count_sums.size - 1, np.ones(1)
    logs = _log_falling(count_sums[first:], rows)
    return first, np.exp(np.minimum(logs - logs[-1], 0.0))


def _log_falling(n: NDArray[np.int64], r: int) -> NDArray[np.float64]:
    """(m,) ln(n! / (n-r)!) - r ln(n_m) for n >= r, differences of which keep full precision for large n.

    With Stirling's series the large terms are r ln(n / n_m) and (n - r + 1/2) ln(1 - r/n), both of the size of the
    result; a plain difference of log-gammas would lose eight digits at n = 20 million.
    """
    x = n.astype(np.float64)
    rest = x - r
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -(rest + 0.5) * np.log1p(-r / x) - r + _stirling(x) - _stirling(rest)
    value += r * np.log(x / x[-1])
    for i in np.flatnonzero(rest < _SMALL):  # at most 16 of them: n is strictly increasing
        whole = int(n[i])
        value[i] = math.lgamma(whole + 1) - _SMALL_LOG_FACTORIALS[whole - r] - r * math.log(float(x[-1]))
    return value


def _stirling(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """What ln x! has beyond (x + 1/2) ln x - x + ln(2 pi)/2. Source: Abramowitz & Stegun 6.1.41."""
    inverse = 1.0 / x
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680))))
