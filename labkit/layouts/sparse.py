"""The sparse layout: the rows end to end, and each id field as a sparse matrix of counts, rows x vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.errors import ShapeError
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.segments import row_ids


class CountMatrix(NamedTuple):
    """How often each id is in each row: a CSR matrix, and with ``row_ids`` a COO one.

        row 0: items 5 5 7    row_offsets 0 2    columns 5 7    counts 2 1    row_ids 0 0

    Repeated items become one entry with its count, so an entry is not an event: lengths come from the batch's offsets.

    Attributes:
        row_offsets: (R + 1,) int64, row r has the entries ``row_offsets[r]`` to ``row_offsets[r + 1] - 1``.
        columns: (E,) int64 ids, strictly increasing within a row.
        counts: (E,) float32, events of the row with that id, >= 1.
        row_ids: (E,) int64, the row of each entry.
    """

    row_offsets: Tensor
    columns: Tensor
    counts: Tensor
    row_ids: Tensor


class SparseBatch(NamedTuple):
    """A batch as a sparse matrix: events end to end, the row of each event, and the counts of ids.

        values a b a d e    offsets 0 3 5 5    row_ids 0 0 0 1 1    rows 2 (and a ghost row)

    ``offsets`` with columns 0 .. T - 1 is a CSR matrix rows x events: times the (T, D) embeddings of the events it
    pools them. ``counts`` is rows x vocabulary: times the (V, D) table it pools without a gather.

    Attributes:
        values: (T,) or (T, D); for samples with named fields a dict of them, fixed-size fields being (R, ...).
        offsets: (R + 1,) int64; ghost rows are empty.
        row_ids: (T,) int64, the row of each event.
        counts: of ``values``, or of each sequence field that holds ids: (T,) integers; None or absent for others.
        rows: real rows; the R - rows ghost rows come last.
    """

    values: Tensor | dict[str, Tensor]
    offsets: Tensor
    row_ids: Tensor
    counts: CountMatrix | dict[str, CountMatrix] | None
    rows: int


def count_matrix(ids: Tensor, offsets: Tensor) -> CountMatrix:
    """Count the ids of each row, on the host.

        ids 5 5 7 | | 5    offsets 0 3 3 4    ->    row_offsets 0 2 2 3    columns 5 7 5    counts 2 1 1

    Args:
        ids: (T,) integers >= 0 on the CPU.
        offsets: (R + 1,) int64.

    Raises:
        ShapeError: not one id an event, or an id below 0.

    Cost: a sort of T keys.
    """
    if ids.ndim != 1 or ids.is_floating_point():
        raise ShapeError(f"counts need (T,) integer ids: got shape {tuple(ids.shape)}, {ids.dtype}.")
    own, starts = ids.numpy(), offsets.numpy()
    if own.size and int(own.min()) < 0:
        raise ShapeError(f"ids must be 0 or more: got {int(own.min())}. Remap them to 0 .. vocabulary - 1.")
    rows = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((own, rows))
    rows, own = rows[order], own[order]
    first = np.ones(own.size, bool)
    first[1:] = (own[1:] != own[:-1]) | (rows[1:] != rows[:-1])
    at = np.flatnonzero(first)
    counts = np.diff(at, append=own.size)
    entries: NDArray[np.int64] = np.zeros(starts.size, np.int64)
    np.cumsum(np.bincount(rows[at], minlength=starts.size - 1), out=entries[1:])
    parts = (entries, own[at].astype(np.int64), counts.astype(np.float32), rows[at])
    return CountMatrix(*(torch.from_numpy(part) for part in parts))


def sparse_batch(jagged: JaggedBatch, sequences: tuple[str, ...] | None = None) -> SparseBatch:
    """Add to a jagged batch on the CPU what makes it a sparse matrix.

    Args:
        jagged: the batch.
        sequences: names of the fields with one entry an event; None: of a batch without names.

    Raises:
        ShapeError: named values without ``sequences``.

    Cost: a sort of the events a field of ids.
    """
    values, offsets = jagged.values, jagged.offsets
    if isinstance(values, dict) and sequences is None:
        raise ShapeError(f"sequences= must name the fields with one entry an event: the batch has {', '.join(values)}.")
    events = values if isinstance(values, Tensor) else {name: values[name] for name in sequences or ()}
    total = int(offsets[-1])
    counts: CountMatrix | dict[str, CountMatrix] | None
    if isinstance(events, dict):
        counts = {name: count_matrix(part, offsets) for name, part in events.items() if _are_ids(part)}
    else:
        counts = count_matrix(events, offsets) if _are_ids(events) else None
    return SparseBatch(values, offsets, row_ids(offsets, total), counts, jagged.rows)


def _are_ids(events: Tensor) -> bool:
    """(T,) integers, none below 0: others are not counted."""
    return events.ndim == 1 and events.dtype in (torch.int64, torch.int32) and not bool((events < 0).any())
