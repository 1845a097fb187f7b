"""Cheapest cuts of a sorted histogram into buckets: the dynamic program behind ``optimal_edges``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Each round of a layer solves this many times more positions than the one before.
_BRANCHING = 4


@dataclass(frozen=True, eq=False)
class Cuts:
    """The optimum.

    Attributes:
        cuts: (k,) positions of the last length of each bucket, increasing; the last is m - 1. Fewer than K where
            another cut saves less than its charge, or less than float prices can show.
        curve: (K,) least cost with at most k buckets, k = 1 .. K, without the charge.
    """

    cuts: NDArray[np.int64]
    curve: NDArray[Any]


def cheapest_cuts(prices: NDArray[Any], count_sums: NDArray[np.int64], buckets: int, charge: int | float = 0) -> Cuts:
    """Cut m lengths into at most ``buckets`` runs so that sum of price[end of run] * sequences in the run is least.

    Args:
        prices: (m,) strictly increasing price of a row of each length.
        count_sums: (m,) int64, sequences up to and including each length.
        buckets: K, 1 <= K <= m.
        charge: what each run costs on top; the number of runs is then the one with the least sum, the fewest on ties.

    With D_k[j] the least cost of the first j lengths in k runs,
    D_k[j] = price_j N_j + min_i (D_{k-1}[i] - price_j N_i). The best i never moves left as j grows, so positions
    solved coarsely bracket those between them: every layer is a few rounds of vectorized minima over short ranges. An
    i >= j never beats i = j, so no range needs to be clipped.

    Float prices round: minima may then be off by that rounding, so that brackets, cuts and curve are kept in order.

    Leftmost minima give the lexicographically smallest cuts: optimal cut sets of a Monge cost form a lattice.

    Cost: O(K m log m) time, O(K m) memory for the way back; exact in int64 for integer prices.
    """
    m = prices.size
    sums = np.concatenate(([0], count_sums)).astype(prices.dtype if prices.dtype.kind == "f" else np.int64)
    own = np.concatenate(([prices[0] * 0], prices))  # own[j]: price of a run that ends with the j-th length
    best = own * sums  # one run
    costs = [best[m]]
    choices: list[NDArray[np.int32]] = []
    rounds = _rounds(m)
    for _ in range(1, buckets):
        choice = _leftmost_minima(best, sums, own, rounds)
        best = best[choice] + own * (sums - sums[choice])
        choices.append(choice.astype(np.int32))
        costs.append(best[m])
    curve = np.minimum.accumulate(costs)
    ends = [m]
    for layer in reversed(choices[: _cheapest_size(curve.tolist(), charge) - 1]):
        ends.append(int(layer[ends[-1]]))
    cuts = np.unique(ends)
    return Cuts(cuts=cuts[cuts > 0] - 1, curve=curve)


def _cheapest_size(curve: list[int] | list[float], charge: int | float) -> int:
    """How many runs have the least cost with their charges; Python numbers, so that no sum wraps around."""
    if not charge:
        return len(curve)
    totals = [cost + charge * size for size, cost in enumerate(curve, start=1)]
    return 1 + totals.index(min(totals))


@dataclass(frozen=True, eq=False)
class _Round:
    """Positions that are solved together, each between two that were solved before (indices into ``choice``)."""

    positions: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]


def _rounds(last: int) -> list[_Round]:
    """Positions 1 .. last - 1, coarse to fine: each round halves the distance. 0 and ``last`` count as solved."""
    stride = 1 << max(0, last - 1).bit_length()
    rounds = []
    while stride > 1:
        stride //= 2
        new = np.arange(stride, last, 2 * stride)
        if new.size:
            rounds.append(_Round(new, new - stride, np.minimum(new + stride, last)))
    return rounds


def _leftmost_minima(
    best: NDArray[Any], sums: NDArray[Any], own: NDArray[Any], rounds: list[_Round]
) -> NDArray[np.int64]:
    """(m + 1,) for every j the leftmost i that minimizes best[i] - own[j] * sums[i]; j = 0 has nothing to cut."""
    choice = np.zeros(own.size, dtype=np.int64)
    choice[-1] = int(np.argmin(best - own[-1] * sums))
    for part in rounds:
        low = choice[part.left]
        high = np.maximum(low, choice[part.right])
        choice[part.positions] = _solve(best, sums, own[part.positions], low, high)
    return np.minimum(choice, np.arange(own.size))


def _solve(
    best: NDArray[Any], sums: NDArray[Any], own: NDArray[Any], low: NDArray[np.int64], high: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Leftmost minimum of each position over its own candidates low .. high, all ranges flattened into one array."""
    sizes = high - low + 1
    ends = np.cumsum(sizes)
    starts = ends - sizes
    owner = np.repeat(np.arange(sizes.size), sizes)
    candidates = (low - starts)[owner]
    candidates += np.arange(ends[-1])
    values = best[candidates] - own[owner] * sums[candidates]
    hits = np.flatnonzero(values == np.minimum.reduceat(values, starts)[owner])
    first: NDArray[np.int64] = candidates[hits[np.searchsorted(hits, starts)]]
    return first
