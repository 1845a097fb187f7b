"""Bucket edges: by quantiles, by the P95 rule of thumb, and the exact optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.batching import segmentation
from labkit.batching.fields import whole_number
from labkit.errors import EdgesError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH

#: Cost of one row of a given length: (m,) int64 ascending -> (m,) non-decreasing.
RowCost = Callable[[NDArray[np.int64]], NDArray[Any]]

#: The quantiles of the widespread rule: four inner ones and a top one.
USUAL_QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)


@dataclass(frozen=True, slots=True)
class Edges:
    """Bucket edges and how they were found.

    Attributes:
        edges: strictly increasing integers >= 1, upper-inclusive.
        widths: padded width of each bucket where it is not the edge itself, else None.
        cost: total row cost of all sequences (optimal edges only).
        curve: curve[k - 1] is the least cost with at most k buckets (optimal edges only).
        asked: how many buckets were asked for; fewer are left where edges coincide or a bucket would be empty.
    """

    edges: tuple[int, ...]
    widths: tuple[int, ...] | None = None
    cost: int | float | None = None
    curve: tuple[int, ...] | tuple[float, ...] | None = None
    asked: int = 0

    def __len__(self) -> int:
        """Number of buckets."""
        return len(self.edges)

    @property
    def note(self) -> str | None:
        """One line where fewer buckets are left than were asked for."""
        if len(self.edges) >= self.asked:
            return None
        return f"{self.asked} buckets asked, {len(self.edges)} left: equal edges and empty buckets are merged."


def quantile_edges(histogram: LengthHistogram, quantiles: Sequence[float]) -> Edges:
    """Edges at quantiles of the lengths: sorted unique ``max(1, ceil(P_q))``; edges of empty buckets are deleted.

    The last edge is the last quantile asked: below 1, the policy's ``overflow`` decides about the rest.

    Args:
        histogram: of (capped) lengths.
        quantiles: within 0 .. 1, at least one.

    Raises:
        EdgesError: no quantiles; LengthsError: one outside 0 .. 1.
    """
    if not len(quantiles):
        raise EdgesError("quantiles are empty: give at least one, for example 0.5,0.95.")
    candidates = sorted({max(1, ceil(q)) for q in histogram.quantiles(list(quantiles))})
    return Edges(edges=_without_empty(histogram, candidates), asked=len(quantiles))


def equal_quantile_edges(histogram: LengthHistogram, buckets: int) -> Edges:
    """Edges at the quantiles 1/K .. K/K: as many sequences in each bucket as ties allow."""
    buckets = whole_number("buckets", buckets)
    return quantile_edges(histogram, [k / buckets for k in range(1, buckets + 1)])


def quantile_p95_edges(histogram: LengthHistogram, quantiles: Sequence[float] = USUAL_QUANTILES[:-1]) -> Edges:
    """The rule of thumb: buckets at inner quantiles and an open last one, each padded to its own in-bucket P95.

    What lies above the width of its bucket is cut: about 5 % of the users of every bucket lose their oldest events.

    Args:
        histogram: of (capped) lengths.
        quantiles: of the inner edges; the last edge is the longest length.

    Returns:
        Edges with ``widths``: max(1, ceil(P95 of the lengths in the bucket)).
    """
    inner = quantile_edges(histogram, [*quantiles, 1.0])
    bounds = np.searchsorted(histogram.values, inner.edges, side="right")
    widths, low = [], 0
    for high in bounds.tolist():
        part = LengthHistogram(histogram.values[low:high], histogram.counts[low:high])
        widths.append(max(1, ceil(part.quantile(0.95))))
        low = high
    return Edges(edges=inner.edges, widths=tuple(widths), asked=len(quantiles) + 1)


def optimal_edges(
    histogram: LengthHistogram, buckets: int, *, cost: RowCost | None = None, length_multiple: int = 1
) -> Edges:
    """The edges with the least total row cost: exact, for every number of buckets up to ``buckets`` at once.

        cost of a bucket (i, j] = f(v_j) (N_j - N_i),    f = slots a row by default

    Args:
        histogram: of (capped) lengths; m distinct ones.
        buckets: K, most buckets.
        cost: non-decreasing cost of one row of each length (slots, L + alpha L**2, a measured table); None: slots.
        length_multiple: widths are rounded up to it before they are costed.

    Returns:
        At most K edges, observed lengths each; ties go to the lexicographically smallest; with the whole curve. Integer
        costs are exact, unless their sum is beyond 2**62: then, like float costs, they round as float64 does.

    Raises:
        PolicyError: buckets or length_multiple below 1, or a length_multiple above 2**31 - 1.
        EdgesError: a cost that decreases, is negative or not finite, alone or in sum.

    Cost: O(K m log m) vectorized: 4096 lengths and K = 64 in some tens of milliseconds; memory O(K m).
    Source: the cost is Monge (quadrangle inequality), so that optimal cuts are monotone: divide and conquer,
        F. Yao, Efficient Dynamic Programming Using Quadrangle Inequalities, 1980.
    """
    buckets = whole_number("buckets", buckets)
    multiple = whole_number("length_multiple", length_multiple, most=MAX_LENGTH)
    widths = np.maximum(-(-histogram.values // multiple), 1) * multiple
    prices = _row_costs(widths, cost, histogram.sequences)
    # lengths of the same price are one candidate: the longest of them
    last = np.flatnonzero(np.append(prices[1:] > prices[:-1], True))
    found = segmentation.cheapest_cuts(prices[last], histogram.count_sums[last + 1], min(buckets, last.size))
    ends = histogram.values[last[found.cuts]]
    edges = tuple(max(1, int(v)) for v in ends)
    curve = tuple(found.curve.tolist())
    return Edges(edges=edges, cost=curve[-1], curve=curve, asked=buckets)


def _row_costs(widths: NDArray[np.int64], cost: RowCost | None, sequences: int) -> NDArray[Any]:
    if cost is None:
        return widths
    prices = np.asarray(cost(widths))
    if prices.shape != widths.shape:
        raise EdgesError(f"cost must give one price per length: got shape {prices.shape} for {widths.size} lengths.")
    if prices.dtype.kind not in "iuf" or not np.isfinite(prices).all() or (prices < 0).any():
        raise EdgesError("cost must give finite numbers of 0 or more.")
    falls = np.flatnonzero(prices[1:] < prices[:-1])
    if falls.size:
        i = int(falls[0])
        raise EdgesError(
            f"cost must not decrease with the length: {prices[i]} at length {widths[i]}, "
            f"{prices[i + 1]} at {widths[i + 1]}."
        )
    most = float(prices[-1]) * sequences
    if not np.isfinite(most):
        raise EdgesError(f"cost must give numbers whose sum is finite: got {prices[-1]} for {sequences} sequences.")
    return prices.astype(np.int64 if prices.dtype.kind in "iu" and most < 2.0**62 else np.float64)


def _without_empty(histogram: LengthHistogram, candidates: list[int]) -> tuple[int, ...]:
    """Drop each edge whose bucket holds no sequence: its range joins the next bucket."""
    positions = np.searchsorted(histogram.values, candidates, side="right").tolist()
    kept, before = [], 0
    for edge, position in zip(candidates, positions, strict=True):
        if position > before:
            kept.append(edge)
            before = position
    return tuple(kept)
