"""Bucket edges: by quantiles, by the P95 rule of thumb, and the exact optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from labkit.batching import segmentation
from labkit.batching.costs import RowCost, row_costs
from labkit.batching.edge_charges import checked_number
from labkit.batching.fields import whole_number
from labkit.errors import EdgesError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH

#: The quantiles of the widespread rule: four inner ones and a top one.
USUAL_QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.95)


@dataclass(frozen=True, slots=True)
class Edges:
    """Bucket edges and how they were found.

    Attributes:
        edges: strictly increasing integers >= 1, upper-inclusive.
        widths: padded width of each bucket where it is not the edge itself, else None.
        cost: total row cost of all sequences, without the charge (optimal edges only).
        curve: curve[k - 1] is the least cost with at most k buckets, without the charge (optimal edges only).
        asked: how many buckets were asked for; fewer are left where edges coincide or a bucket would be empty, or where
            another bucket saves less than its charge.
        charge_per_bucket: what each bucket costs on top, in the unit of ``cost``.
    """

    edges: tuple[int, ...]
    widths: tuple[int, ...] | None = None
    cost: int | float | None = None
    curve: tuple[int, ...] | tuple[float, ...] | None = None
    asked: int = 0
    charge_per_bucket: int | float = 0

    def __len__(self) -> int:
        """Number of buckets."""
        return len(self.edges)

    @property
    def total(self) -> int | float | None:
        """Row cost and charges together; None without a cost."""
        return None if self.cost is None else self.cost + self.charge_per_bucket * len(self.edges)

    @property
    def note(self) -> str | None:
        """One line where fewer buckets are left than were asked for."""
        if len(self.edges) >= self.asked:
            return None
        if self.curve is not None and len(self.edges) < len(self.curve):
            charge = f"more than its charge of {self.charge_per_bucket:,.10g}" if self.charge_per_bucket else "anything"
            return f"{self.asked} buckets allowed, {len(self.edges)} chosen: no further one saves {charge}."
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
    histogram: LengthHistogram,
    buckets: int,
    *,
    cost: RowCost | None = None,
    length_multiple: int = 1,
    charge_per_bucket: int | float = 0,
) -> Edges:
    """The edges with the least total row cost: exact, for every number of buckets up to ``buckets`` at once.

        cost of a bucket (i, j] = f(v_j) (N_j - N_i) + charge,    f = slots a row and no charge by default

    With a charge the number of buckets is chosen, not given. Ghost rows and partial batches are not in this cost:
    ``labkit.batching.finite_edges`` counts them.

    Args:
        histogram: of (capped) lengths; m distinct ones.
        buckets: K, most buckets.
        cost: non-decreasing cost of one row of each length: those of ``labkit.batching.costs`` (slots,
            L + alpha L**2, a measured table) or any other; None: slots.
        length_multiple: widths are rounded up to it before they are costed.
        charge_per_bucket: what one more shape costs, in the unit of ``cost``: see ``edge_charges``.

    Returns:
        At most K edges, observed lengths each; ties go to fewer buckets, then to the lexicographically smallest; with
        the whole curve. Integer costs are exact, unless their sum is beyond 2**62: then, like float costs, they round
        as float64 does.

    Raises:
        PolicyError: buckets or length_multiple below 1, or a length_multiple above 2**31 - 1.
        EdgesError: a cost that decreases, is negative or not finite, alone or in sum; a charge that is negative or not
            finite.

    Cost: O(K m log m) vectorized: 4096 lengths and K = 64 in some tens of milliseconds; memory O(K m).
    Source: the cost is Monge (quadrangle inequality), so that optimal cuts are monotone: divide and conquer,
        F. Yao, Efficient Dynamic Programming Using Quadrangle Inequalities, 1980.
    """
    buckets = whole_number("buckets", buckets)
    multiple = whole_number("length_multiple", length_multiple, most=MAX_LENGTH)
    widths = np.maximum(-(-histogram.values // multiple), 1) * multiple
    charge = checked_number("charge_per_bucket", charge_per_bucket)
    prices = row_costs(widths, cost, histogram.sequences)
    # lengths of the same price are one candidate: the longest of them
    last = np.flatnonzero(np.append(prices[1:] > prices[:-1], True))
    found = segmentation.cheapest_cuts(prices[last], histogram.count_sums[last + 1], min(buckets, last.size), charge)
    ends = histogram.values[last[found.cuts]]
    edges = tuple(max(1, int(v)) for v in ends)
    curve = tuple(found.curve.tolist())
    spent = curve[-1 if not charge else len(edges) - 1]
    return Edges(edges=edges, cost=spent, curve=curve, asked=buckets, charge_per_bucket=charge)


def _without_empty(histogram: LengthHistogram, candidates: list[int]) -> tuple[int, ...]:
    """Drop each edge whose bucket holds no sequence: its range joins the next bucket."""
    positions = np.searchsorted(histogram.values, candidates, side="right").tolist()
    kept, before = [], 0
    for edge, position in zip(candidates, positions, strict=True):
        if position > before:
            kept.append(edge)
            before = position
    return tuple(kept)
