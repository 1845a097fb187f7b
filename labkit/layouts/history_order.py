"""What comes after what: the last event of each row, and which events of a row follow one another, in every layout."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.masks import Side
from labkit.layouts.packed import PackedBatch
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.layouts.segments import row_ids

#: Layouts in which the slots of a row are side by side.
Histories: TypeAlias = PaddedBatch | JaggedBatch | PackedBatch


def follows(batch: Histories | PackedSequenceBatch, events: int) -> Tensor:
    """Which slots hold an event that follows the one in the slot before, in the same history.

        padded  a b c .  -> 1 1 0      packed  a b d e  (segments 1 1 2 2) -> 1 0 1
        jagged  a b | | d e f  -> 1 0 1 1

    Args:
        batch: of any layout with rows.
        events: T, ``values.shape[0]``: the rows of a jagged batch end where the device alone knows.

    Returns:
        Bool, one less than slots: (R, L - 1), or (T - 1,) row by row (also of a packed sequence, see its ``unpack``).

    Cost: a few passes over int64 slots; no host synchronization.
    """
    if isinstance(batch, PaddedBatch):
        return batch.valid[:, 1:] & batch.valid[:, :-1]
    if isinstance(batch, PackedBatch):
        own = batch.segment_ids
        return (own[:, 1:] == own[:, :-1]) & (own[:, 1:] != 0)
    if isinstance(batch, PackedSequenceBatch):
        ids = row_ids(ends_of(batch.lengths), events)
    else:
        ids = row_ids(batch.offsets, events)
    return ids[1:] == ids[:-1]


def last_events(values: Tensor, batch: Histories, side: Side = Side.RIGHT) -> Tensor:
    """The value of the last event of each row; exactly 0 for empty rows.

    Args:
        values: (R, L, D), or (T, D) of a jagged batch.
        batch: that they belong to.
        side: of the padding of a rectangle.

    Returns:
        (R, D), of packed rows (S, D): one a piece.

    Cost: one gather; no host synchronization.
    """
    lengths = batch.lengths if not isinstance(batch, JaggedBatch) else batch.offsets[1:] - batch.offsets[:-1]
    flat = values if isinstance(batch, JaggedBatch) else values.flatten(0, 1)
    if not flat.shape[0]:  # nothing to gather; the sum keeps the result a function of the values
        return flat.new_zeros(lengths.shape[0], *flat.shape[1:]) + flat.sum()
    found = flat.index_select(0, _last_slots(batch, side).clamp(min=0))
    return found.masked_fill((lengths == 0).view(-1, *[1] * (found.ndim - 1)), 0)


def ends_of(lengths: Tensor) -> Tensor:
    """(R + 1,) offsets of rows with (R,) lengths: 0, then the running sums."""
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0))


def _last_slots(batch: Histories, side: Side) -> Tensor:
    """(R,) number of the slot that holds the last event of each row; of empty rows whatever comes out, >= -1."""
    if isinstance(batch, JaggedBatch):
        return batch.offsets[1:] - 1
    if isinstance(batch, PaddedBatch):
        rows, width = batch.valid.shape
        start = torch.arange(rows, device=batch.valid.device) * width
        return start + (batch.lengths if side is Side.RIGHT else width) - 1
    rows, width = batch.segment_ids.shape
    pack = row_ids(batch.piece_offsets, batch.lengths.shape[0])
    ends = ends_of(batch.lengths)  # of the pieces, end to end through all packs
    before = ends[batch.piece_offsets[:-1]]  # events in the packs before
    return ends[1:] - before[pack] + pack * width - 1
