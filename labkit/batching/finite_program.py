"""The plain program over all cuts: what a bucket costs may be anything, so that each run of lengths is priced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.batching.groups import Groups
from labkit.batching.objective import Objective


@dataclass(frozen=True, eq=False)
class Runs:
    """The price of any run of candidates as a bucket.

    Attributes:
        groups: each candidate as if it were an edge: its width and most rows.
        sums: (m + 1,) sequences below each candidate.
        prices: (m,) cost of a row of each candidate's width.
        objective: the weights.
    """

    groups: Groups
    sums: NDArray[np.int64]
    prices: NDArray[Any]
    objective: Objective

    @classmethod
    def of(cls, groups: Groups, sums: NDArray[np.int64], prices: NDArray[Any], objective: Objective) -> Runs:
        """Prices as they are where no sum can leave int64, else in float64."""
        n, dearest = int(sums[-1]), prices[-1].item()
        # each bucket rounds its rows up once: by less than a batch, and to one multiple at most
        rows = n + groups.rows.size * min(int(groups.rows.max()), n + groups.row_multiple)
        most = objective.per_slot * dearest * rows + (objective.per_batch + objective.dropped(dearest)) * n
        return cls(groups, sums, prices if most < 2**61 else prices.astype(np.float64), objective)

    def starting_at(self, i: int) -> NDArray[Any]:
        """(m - i,) objective of the buckets that hold the candidates i .. j, for each j >= i."""
        counts = self.sums[i + 1 :] - self.sums[i]
        rows, batches, dropped = counted(self.groups, counts, self.groups.rows[i:])
        value: NDArray[Any] = self.objective.per_slot * self.prices[i:] * rows
        if self.objective.per_batch:
            value = value + self.objective.per_batch * batches
        if self.groups.drop_last:
            value = value + self.objective.dropped(self.prices[-1].item()) * dropped
        return value


def counted(
    groups: Groups, counts: NDArray[np.int64], most: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows (ghosts included), batches and sequences left out of groups of (n,) ``counts`` with ``most`` rows a batch.

    The same rule as ``Groups.split``, for arrays.
    """
    if groups.drop_last:
        batches = counts // most
        return batches * most, batches, counts - batches * most
    batches = -(-counts // most)
    if not groups.static:
        return counts, batches, np.zeros_like(counts)
    rows = -(-counts // batches)
    rounded = -(-rows // groups.row_multiple) * groups.row_multiple
    return np.where(rounded <= most, rounded, rows) * batches, batches, np.zeros_like(counts)


def cheapest(runs: Runs, buckets: int) -> tuple[NDArray[np.int32], list[Any]]:
    """The program, from the longest lengths to the shortest, all numbers of buckets together.

    Returns:
        (K, m) where the next bucket starts when the candidates from each one on are in k + 1 buckets, and the least
        cost of all with at most k + 1 buckets. First minima from the left make the edges lexicographically smallest.
    """
    m = runs.sums.size - 1
    whole = runs.starting_at(0)
    best = np.full((buckets, m + 1), np.inf if whole.dtype.kind == "f" else np.iinfo(np.int64).max // 2, whole.dtype)
    firsts = np.full((buckets, m), m, dtype=np.int32)
    for i in range(m - 1, -1, -1):
        own = whole if i == 0 else runs.starting_at(i)
        best[0, i] = own[-1]
        if buckets > 1 and i < m - 1:
            totals = best[:-1, i + 1 : m] + own[:-1]
            found = totals.argmin(axis=1)
            firsts[1:, i] = i + 1 + found
            best[1:, i] = totals[np.arange(buckets - 1), found]
    return firsts, np.minimum.accumulate(best[:, 0]).tolist()
