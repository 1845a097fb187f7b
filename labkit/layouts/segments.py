"""Sums, means and maxima of the rows of a jagged array, in torch ops that never ask the device for a number."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.layouts.packed import PackedBatch


def row_ids(offsets: Tensor, events: int) -> Tensor:
    """The row of each event.

        offsets 0 2 2 5 -> 0 0 2 2 2

    Args:
        offsets: (R + 1,) int64.
        events: T, known on the host: ``values.shape[0]``.

    Returns:
        (T,) int64 on the device of ``offsets``.

    Cost: one kernel; with ``output_size`` no host synchronization.
    """
    rows = torch.arange(offsets.shape[0] - 1, device=offsets.device)
    return rows.repeat_interleave(offsets[1:] - offsets[:-1], output_size=events)


def piece_ids(batch: PackedBatch) -> Tensor:
    """The piece of each slot of a packed batch, numbered through all its rows.

        segment_ids 1 1 2 0 | 1 2 2 2    piece_offsets 0 2 4    ->    0 0 1 4 | 2 3 3 3

    Returns:
        (R, W) int64; S, one more than the last piece, in padding.
    """
    own = batch.piece_offsets[:-1, None] + (batch.segment_ids - 1)
    return own.masked_fill(batch.segment_ids == 0, batch.lengths.shape[0])


def segment_sum(values: Tensor, ids: Tensor, rows: int) -> Tensor:
    """(R, ...) sums of the (T, ...) events of each row; empty rows give 0.

    Cost: reads T * D elements; on CUDA by atomic additions, whose order, and so the last bits, differ between runs.
    """
    return values.new_zeros((rows, *values.shape[1:])).index_add(0, ids, values)


def segment_mean(values: Tensor, ids: Tensor, lengths: Tensor) -> Tensor:
    """(R, D) means of the (T, D) events of each row; ``lengths`` (R,); empty rows give 0."""
    count = lengths.clamp(min=1).to(values.dtype)
    return segment_sum(values, ids, lengths.shape[0]) / count[:, None]


def segment_max(values: Tensor, ids: Tensor, rows: int) -> Tensor:
    """(R, ...) maxima of the (T, ...) events of each row; empty rows give 0."""
    index = ids.view(-1, *[1] * (values.ndim - 1)).expand_as(values)
    start = values.new_full((rows, *values.shape[1:]), -torch.inf)
    found = start.scatter_reduce(0, index, values, "amax", include_self=True)
    return found.masked_fill(found == -torch.inf, 0)
