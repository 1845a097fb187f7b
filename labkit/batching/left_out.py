"""The sequences of batches that no rank has: which of them are lost whole, and which only a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.batch_sums import BatchSums, is_split, kept_at
from labkit.batching.dealing import DealTable

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


@dataclass(frozen=True, eq=False, slots=True)
class LeftOut:
    """Sequences that lose by left-out batches.

    Attributes:
        dropped: (M,) int64, sequences in no other batch, by left-out batch.
        cut: (M,) int64, sequences of which other batches hold the rest, by left-out batch; each counts once.
        no_longer_cut: of both, those that had lost a part before.
        mine_no_longer_cut: of those, the ones that were counted in the given batches.
    """

    dropped: NDArray[np.int64]
    cut: NDArray[np.int64]
    no_longer_cut: int
    mine_no_longer_cut: int


def left_out_sequences(
    plan: EpochPlan,
    lengths: NDArray[np.integer],
    limits: NDArray[np.int64],
    table: DealTable,
    sums: BatchSums,
    mine: NDArray[np.int64],
) -> LeftOut:
    """Count the sequences of left-out batches.

    Args:
        plan: of the whole epoch.
        lengths: (N,) lengths that it was made of.
        limits: (B,) most events kept of a sequence of each batch.
        table: who has which batch.
        sums: of the left-out batches.
        mine: batches of the rank that asks.

    Cost: O(1) but for split histories, whose pieces elsewhere are looked for: O(N) where a batch is left out.
    """
    batches = table.left_out
    sizes = plan.batch_offsets[batches + 1] - plan.batch_offsets[batches]
    if not is_split(plan) or not batches.size:
        return LeftOut(sizes, np.zeros_like(sizes), int(sums.cut.sum()), 0)
    pieces = arrange.gather(plan.order, plan.batch_offsets[batches], plan.batch_offsets[batches + 1])
    touched, first = np.unique(pieces, return_index=True)
    batch_of = np.searchsorted(np.cumsum(sizes), first, side="right")  # where its first piece is
    marked = np.zeros(lengths.size, dtype=bool)
    marked[touched] = True
    elsewhere = np.setdiff1d(np.arange(len(plan)), batches)
    found = np.zeros(lengths.size, dtype=bool)
    for _, _, at in arrange.spans(plan.batch_offsets[elsewhere], plan.batch_offsets[elsewhere + 1]):
        found[plan.order[at]] = True
    survives = found[touched]
    mine_cut = 0
    for _, _, at in arrange.spans(plan.batch_offsets[mine], plan.batch_offsets[mine + 1]):
        at = at[marked[plan.order[at]]]
        mine_cut += int(np.count_nonzero(kept_at(plan, lengths, at, limits[0]).lost))
    return LeftOut(
        dropped=np.bincount(batch_of[~survives], minlength=batches.size),
        cut=np.bincount(batch_of[survives], minlength=batches.size),
        no_longer_cut=int(np.count_nonzero(lengths[touched] > limits[0])),
        mine_no_longer_cut=mine_cut,
    )
