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
        in_mine: of both, those whose loss is found in the batches of the rank that asks.
        in_dealt: the same for the batches of all ranks.
    """

    dropped: NDArray[np.int64]
    cut: NDArray[np.int64]
    no_longer_cut: int
    in_mine: int
    in_dealt: int


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
        return LeftOut(sizes, np.zeros_like(sizes), int(sums.cut.sum()), 0, 0)
    pieces = arrange.gather(plan.order, plan.batch_offsets[batches], plan.batch_offsets[batches + 1])
    touched, first = np.unique(pieces, return_index=True)
    batch_of = np.searchsorted(np.cumsum(sizes), first, side="right")  # where its first piece is
    place = np.full(lengths.size, -1)
    place[touched] = np.arange(touched.size)
    dealt = np.setdiff1d(np.arange(len(plan)), batches)
    kept, elsewhere, in_dealt = _of_touched(plan, lengths, limits, dealt, place, touched.size)
    kept_before = kept + _of_touched(plan, lengths, limits, batches, place, touched.size)[0]
    found = elsewhere > 0
    return LeftOut(
        dropped=np.bincount(batch_of[~found], minlength=batches.size),
        cut=np.bincount(batch_of[found], minlength=batches.size),
        no_longer_cut=int(np.count_nonzero(kept_before < lengths[touched])),
        in_mine=_of_touched(plan, lengths, limits, mine, place, touched.size)[2],
        in_dealt=in_dealt,
    )


def _of_touched(
    plan: EpochPlan,
    lengths: NDArray[np.integer],
    limits: NDArray[np.int64],
    batches: NDArray[np.int64],
    place: NDArray[np.int64],
    many: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Of each touched sequence: events in some batches and pieces there; and how many show a loss there."""
    events, pieces, losses = np.zeros(many, dtype=np.int64), np.zeros(many, dtype=np.int64), 0
    for _, _, at in arrange.spans(plan.batch_offsets[batches], plan.batch_offsets[batches + 1]):
        where = place[plan.order[at]]
        own = kept_at(plan, lengths, at[where >= 0], limits[0])
        np.add.at(events, where[where >= 0], own.kept)
        np.add.at(pieces, where[where >= 0], 1)
        losses += int(np.count_nonzero(own.lost))
    return events, pieces, losses
