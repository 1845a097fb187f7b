"""Edges for finite data: the batches of an epoch counted whole, with their ghost rows, partial batches and leftovers.

``optimal_edges`` prices rows, as if there were endlessly many. On small data, or with static shapes, a bucket also pays
for the batch that it cannot fill. That cost is not Monge, so that every cut is tried: the plain O(K m**2) program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labkit.batching.costs import RowCost, row_costs
from labkit.batching.edges import Edges
from labkit.batching.fields import whole_number
from labkit.batching.finite_program import Runs, cheapest
from labkit.batching.groups import resolve_groups
from labkit.batching.objective import Objective
from labkit.batching.policy import BatchPolicy, Overflow, PadTo
from labkit.batching.strategies import Batching
from labkit.errors import EdgesError, PolicyError
from labkit.lengths.histogram import LengthHistogram

#: Most steps K m**2 of the program: some seconds.
MOST_STEPS = 2**31


def finite_steps(histogram: LengthHistogram, buckets: int) -> int:
    """How many steps ``optimal_edges_finite`` would take without merging: about 1e9 a second and core."""
    return min(buckets, histogram.distinct) * histogram.distinct**2


def optimal_edges_finite(
    histogram: LengthHistogram,
    buckets: int,
    policy: BatchPolicy,
    *,
    objective: Objective | None = None,
    cost: RowCost | None = None,
) -> Edges:
    """The edges whose epoch has the least of what is asked, by default slots: exact for this many sequences.

    Among all sets of at most K observed lengths none has a lower ``objective.of(what_if(histogram, policy))``. An edge
    that no sequence has could save a ghost row now and then, by allowing fewer rows; it is not looked for.

    Args:
        histogram: of the data set; m distinct lengths after the cap.
        buckets: K, most buckets.
        policy: a bucket strategy with its rows or budget, cap, multiples, ``static_shapes`` and ``drop_last``; its
            edges are not looked at. Every sequence is covered, so ``overflow`` has nothing to do.
        objective: None: ``Objective()``, the slots.
        cost: cost of a row by its width, as in ``optimal_edges``; None: its slots.

    Returns:
        Edges with the curve of the objective without ``per_bucket``; ties go to fewer buckets, then to the
        lexicographically smallest edges.

    Raises:
        PolicyError: a strategy without buckets; ``bucket_widths``; ``pad_to='batch_max'``; a width above the budget.
        EdgesError: K m**2 above ``MOST_STEPS``, even where lengths of one padded width are merged.

    Cost: O(K m**2) time, vectorized by rows, and O(K m) memory: tens of milliseconds for 1000 lengths and K = 8.
    """
    buckets = whole_number("buckets", buckets)
    wanted = objective or Objective()
    _refuse(policy)
    capped = histogram.capped(policy.max_length)
    ends, sums = _candidates(capped, buckets, policy.length_multiple)
    free = replace(policy, bucket_edges=tuple(ends.tolist()), overflow=Overflow.TRUNCATE)
    groups = resolve_groups(free, capped)
    prices = row_costs(groups.widths, cost, histogram.sequences)
    firsts, curve = cheapest(Runs.of(groups, sums, prices, wanted), min(buckets, ends.size))
    totals = [value + wanted.per_bucket * k for k, value in enumerate(curve, start=1)]
    chosen = totals.index(min(totals)) + 1
    picked, start = [], 0
    for layer in range(chosen - 1, -1, -1):
        start = int(firsts[layer, start])
        picked.append(int(ends[start - 1]))
    return Edges(
        edges=tuple(picked),
        cost=curve[chosen - 1],
        curve=tuple(curve),
        asked=buckets,
        charge_per_bucket=wanted.per_bucket,
    )


def _refuse(policy: BatchPolicy) -> None:
    if policy.spec.batching is not Batching.BUCKETS:
        raise PolicyError(f"strategy {policy.strategy} has no buckets: use bucket_rows, bucket_budget or bucket_graph.")
    if policy.bucket_widths is not None:
        raise PolicyError("bucket_widths belong to edges that are given: leave them out where edges are searched.")
    if policy.pad_to is PadTo.BATCH_MAX:
        raise PolicyError("pad_to='batch_max' has no slots before the shuffle: search the edges with pad_to='edge'.")


def _candidates(histogram: LengthHistogram, buckets: int, multiple: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(m,) edges to choose from, (m + 1,) sequences below each: every length, or the longest of each padded width."""
    ends = np.maximum(histogram.values, 1)
    last = np.flatnonzero(np.append(ends[1:] > ends[:-1], True))
    if min(buckets, last.size) * last.size**2 > MOST_STEPS:
        widths = -(-ends // multiple)
        last = np.flatnonzero(np.append(widths[1:] > widths[:-1], True))
    steps = min(buckets, last.size) * last.size**2
    if steps > MOST_STEPS:
        raise EdgesError(
            f"{last.size} lengths and {buckets} buckets take {steps:.2g} steps, above {MOST_STEPS:.2g}: raise "
            "length_multiple so that widths coincide, ask for fewer buckets, or use optimal_edges."
        )
    return ends[last], histogram.count_sums[np.append(0, last + 1)]
