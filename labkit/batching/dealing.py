"""Dealing the batches of one epoch to ranks: a table of steps x ranks, made from a bucket and a cost for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Remainder(StrEnum):
    """What happens to the batches of a bucket that do not fill a last step of one batch a rank."""

    REPEAT = "repeat"  # batches of the same bucket once more, counted as repeated
    DROP = "drop"  # they are left out, and counted
    UNEVEN = "uneven"  # they come last, and some ranks have one batch more than others


#: In ``DealTable.batches``: this rank has no batch in this step.
NONE = -1


@dataclass(frozen=True, eq=False, slots=True)
class DealTable:
    """Which rank has which batch in which step.

        5 batches, 2 ranks, repeat     0 1 | 2 3 | 4 0     again . . | . . | . x
                           uneven      0 1 | 2 3 | 4 -     left_out empty
                           drop        0 1 | 2 3           left_out 4, left_to rank 0

    Attributes:
        batches: (S, W) int64, number of a batch of the whole epoch, or ``NONE``.
        again: (S, W) bool, the batch is a repetition.
        left_out: (M,) int64, batches that no rank has.
        left_to: (M,) int64, the rank that each of them would have gone to.
    """

    batches: NDArray[np.int64]
    again: NDArray[np.bool_]
    left_out: NDArray[np.int64]
    left_to: NDArray[np.int64]

    def spread(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """(S, W) cost of each rank in each step, 0 where it has no batch."""
        if not costs.size:
            return np.zeros(self.batches.shape)
        return np.where(self.batches == NONE, 0.0, costs[self.batches])


def deal_table(
    bucket: NDArray[np.int64],
    world_size: int,
    remainder: Remainder,
    *,
    costs: NDArray[np.float64] | None,
    rng: np.random.Generator | None,
) -> DealTable:
    """Deal batches in groups of ``world_size`` of one bucket.

    What is repeated or left out does not depend on the costs; they only decide which batches share a step, and who
    takes which.

    Args:
        bucket: (B,) bucket of each batch, in the order of the epoch; all 0 deals round-robin.
        world_size: W, ranks.
        remainder: what happens to the last batches of a bucket.
        costs: (B,) cost of a batch: batches of similar cost share a step, and in each step, from the dearest on, the
            largest batch goes to the rank with the least so far. None: every rank in turn.
        rng: shuffles the steps; None: in the order of the batches.

    Cost: O(B log B); with costs a loop over the steps, some microseconds each.
    """
    by_bucket = np.argsort(bucket, kind="stable")
    bounds = np.flatnonzero(np.diff(bucket[by_bucket])) + 1
    parts = [_blocks(own, world_size, remainder, costs) for own in np.split(by_bucket, bounds)]
    batches, again = (np.concatenate([part[i] for part in parts]).reshape(-1, world_size) for i in (0, 1))
    rests = [part[2] for part in parts]
    key = np.where(again, bucket.size, batches).min(axis=1) if batches.size else np.zeros(0, dtype=np.int64)
    turn = np.argsort(key, kind="stable") if rng is None else rng.permutation(batches.shape[0])
    batches, again = batches[turn], again[turn]
    if remainder is Remainder.UNEVEN:
        last = np.sort(np.concatenate(rests))
        last = last if costs is None else last[np.argsort(-costs[last], kind="stable")]
        padded = np.append(last, np.full(-last.size % world_size, NONE)).reshape(-1, world_size)
        batches, again = np.concatenate([batches, padded]), np.concatenate([again, np.zeros(padded.shape, dtype=bool)])
        rests = []
    none = np.zeros(0, dtype=np.int64)
    table = DealTable(
        batches=batches,
        again=again,
        left_out=np.concatenate([none, *rests]),
        left_to=np.concatenate([none, *(np.arange(rest.size) for rest in rests)]),
    )
    return table if costs is None else _balanced(table, costs)


def _blocks(
    own: NDArray[np.int64], world_size: int, remainder: Remainder, costs: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """The batches of one bucket that are dealt in full steps, whether each is a repetition, and those left over."""
    rest = own.size % world_size
    if rest and remainder is Remainder.REPEAT:
        dealt, over = np.resize(own, own.size + world_size - rest), own[:0]  # from the first one on, round and round
    else:
        dealt, over = own[: own.size - rest], own[own.size - rest :]
    again = np.arange(dealt.size) >= own.size
    if costs is not None:
        largest_first = np.argsort(-costs[dealt], kind="stable")
        dealt, again = dealt[largest_first], again[largest_first]
    return dealt, again, over


def _balanced(table: DealTable, costs: NDArray[np.float64]) -> DealTable:
    """The same steps, each dealt largest first to the rank with the least so far; dearest step first."""
    spread = table.spread(costs)
    largest_first = np.argsort(-spread, axis=1, kind="stable")
    dearest_first = np.argsort(-spread.sum(axis=1), kind="stable")
    totals = [0.0] * spread.shape[1]
    takers = np.empty(spread.shape, dtype=np.int64)
    rows = np.take_along_axis(spread, largest_first, axis=1)[dearest_first].tolist()
    for step, row in zip(dearest_first.tolist(), rows, strict=True):
        least_first = sorted(range(len(totals)), key=totals.__getitem__)
        takers[step] = least_first
        for rank, cost in zip(least_first, row, strict=True):
            totals[rank] += cost
    batches, again = np.empty_like(table.batches), np.empty_like(table.again)
    np.put_along_axis(batches, takers, np.take_along_axis(table.batches, largest_first, axis=1), axis=1)
    np.put_along_axis(again, takers, np.take_along_axis(table.again, largest_first, axis=1), axis=1)
    return DealTable(batches, again, table.left_out, table.left_to)


def straggler(spread: NDArray[np.float64]) -> float:
    """Mean over the rows of max / mean: how much longer a step is than with all ranks equal; 1 where nothing costs."""
    means = spread.mean(axis=1) if spread.size else np.zeros(0)
    real = means > 0
    return float((spread[real].max(axis=1) / means[real]).mean()) if real.any() else 1.0
