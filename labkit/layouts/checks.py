"""check_batch: what no step can afford to ask, asked once of a batch that was made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.errors import ShapeError
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.jagged import validate_offsets
from labkit.layouts.batch import Batch
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.packed import PackedBatch
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.layouts.segmented import SegmentedBatch
from labkit.layouts.sparse import SparseBatch


def check_batch(batch: Batch, sequences: Sequence[str] | None = None) -> None:
    """Refuse a batch whose parts contradict each other; torch would read on, and be wrong in silence.

    Batches of ``collate`` hold what is checked here. A step does not check: on a device it would have to wait.

    Args:
        batch: of any layout and device.
        sequences: names of the fields with one entry an event; None: values without names.

    Raises:
        ShapeError: lengths above the width, offsets that do not cut the values, a mask, segments or counts that are not
            those of the lengths, events where ghost rows should be.

    Cost: a copy of lengths, offsets, masks and counts to the host.
    """
    values = batch.values
    if isinstance(values, dict) and (sequences is None or any(name not in values for name in sequences)):
        raise ShapeError(f"sequences= must name fields with one entry an event: the batch has {', '.join(values)}.")
    events = {name: values[name] for name in sequences or ()} if isinstance(values, dict) else {"values": values}
    lengths = _lengths_of(batch, events)
    if not isinstance(batch, PackedBatch):
        _check_ghost_rows(lengths, batch.rows)


def _lengths_of(batch: Batch, events: dict[str, Tensor]) -> NDArray[np.int64]:
    """(R,) lengths, or (S,) of packed pieces, once the batch is checked against them."""
    if isinstance(batch, PaddedBatch):
        return _check_padded(batch, events)
    if isinstance(batch, PackedBatch):
        return _check_packed(batch, events)
    if isinstance(batch, PackedSequenceBatch):
        lengths = _host(batch.lengths)
        for name, field in events.items():
            if not len(field) == int(batch.batch_sizes.sum()) == int(lengths.sum()):
                raise ShapeError(
                    f"lengths, batch_sizes and {name} must count the same events: got {lengths.sum()}, "
                    f"{int(batch.batch_sizes.sum())} and {len(field)}. Make the batch with pack_jagged."
                )
        return lengths
    for field in events.values():
        validate_offsets(batch.offsets, len(field), shape=tuple(field.shape))
    offsets = _host(batch.offsets)
    if isinstance(batch, JaggedBatch):
        _check_longest(batch, np.diff(offsets))
    elif isinstance(batch, SegmentedBatch):
        _check_bins(batch)
    else:
        _check_sparse(batch, np.diff(offsets))
    return np.diff(offsets)


def _check_padded(batch: PaddedBatch, events: dict[str, Tensor]) -> NDArray[np.int64]:
    lengths, valid = _host(batch.lengths), _host(batch.valid)
    for name, field in events.items():
        if field.shape[:2] != valid.shape or lengths.shape != valid.shape[:1]:
            raise ShapeError(
                f"{name}, valid and lengths must be (R, L, ..), (R, L) and (R,): got {tuple(field.shape)}, "
                f"{valid.shape} and {lengths.shape}."
            )
    _check_range(lengths, valid.shape[1], "the width")
    counted = valid.sum(axis=1)
    if (counted != lengths).any():
        i = int(np.argmax(counted != lengths))
        raise ShapeError(
            f"valid must be True for the events of each row: expected {lengths[i]}, got {counted[i]} in row {i}. "
            "Make it with valid_mask(lengths, width)."
        )
    return lengths


def _check_packed(batch: PackedBatch, events: dict[str, Tensor]) -> NDArray[np.int64]:
    lengths, segments = _host(batch.lengths), _host(batch.segment_ids)
    for name, field in events.items():
        if field.shape[:2] != segments.shape:
            raise ShapeError(f"{name} must be (R, W, ..) as segment_ids {segments.shape}: got {tuple(field.shape)}.")
    offsets: NDArray[np.int64] = validate_offsets(_host(batch.piece_offsets), lengths.size)
    if offsets.size - 1 != len(segments):
        raise ShapeError(f"piece_offsets must be of {len(segments)} packs: got {offsets.size - 1}.")
    pieces = offsets[:-1, None] + segments - 1
    counted = np.bincount(pieces[segments > 0], minlength=lengths.size)
    expected = np.pad(lengths, (0, counted.size - lengths.size))
    if (counted != expected).any():
        i = int(np.argmax(counted != expected))
        raise ShapeError(
            f"segment_ids must hold the events of each piece: expected {expected[i]} of piece {i}, got {counted[i]}."
        )
    return lengths


def _check_sparse(batch: SparseBatch, lengths: NDArray[np.int64]) -> None:
    if not np.array_equal(_host(batch.row_ids), np.repeat(np.arange(lengths.size), lengths)):
        raise ShapeError("row_ids must be those of the offsets: got others. Make the batch with sparse_batch.")
    counts = batch.counts if isinstance(batch.counts, dict) else {"values": batch.counts}
    for name, matrix in counts.items():
        if matrix is None:
            continue
        weights, rows = _host(matrix.counts), _host(matrix.row_ids)
        counted = np.bincount(rows, weights=weights, minlength=lengths.size)
        if not np.array_equal(counted, lengths):
            raise ShapeError(
                f"counts of {name} must add up to the lengths: expected {lengths.sum()}, got {counted.sum():g} events. "
                "Make them with count_matrix."
            )


def _check_longest(batch: JaggedBatch, lengths: NDArray[np.int64]) -> None:
    longest = int(lengths.max(initial=0))
    if batch.longest is not None and batch.longest < longest:
        raise ShapeError(f"longest must be the longest row: expected {longest}, got {batch.longest}.")


def _check_bins(batch: SegmentedBatch) -> None:
    offsets = batch.offsets.cpu()
    giants = batch.bins.shape[0] - bin_rows(offsets, 0, batch.config.thresholds).shape[0]
    if giants < 0 or not torch.equal(batch.bins.cpu(), bin_rows(offsets, giants, batch.config.thresholds)):
        raise ShapeError("bins must be those of the offsets and thresholds: got others. Make the batch with segmented.")


def _check_ghost_rows(lengths: NDArray[np.int64], rows: int) -> None:
    if not 0 <= rows <= lengths.size or lengths[rows:].any():
        raise ShapeError(
            f"rows must count the real rows, the others being empty: got rows == {rows} of {lengths.size}, with "
            f"{int(lengths[max(rows, 0) :].sum())} events after them."
        )


def _check_range(lengths: NDArray[np.int64], most: int, what: str) -> None:
    for bad, rule in (
        (lengths > most, f"at most {what}: expected <= {most}"),
        (lengths < 0, "0 or more: expected >= 0"),
    ):
        if bad.any():
            i = int(np.argmax(bad))
            raise ShapeError(f"lengths must be {rule}, got lengths[{i}] == {lengths[i]}. Cut the rows, or pad wider.")


def _host(tensor: Tensor) -> NDArray[np.int64]:
    array: NDArray[np.int64] = tensor.detach().cpu().numpy()
    return array
