"""pool: the embeddings of a user's events added up, averaged or maximized, by the op that each layout is made for."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

import torch
from torch import Tensor
from torch.nn import functional

from labkit.errors import PolicyError, ShapeError
from labkit.layouts.batch import Batch
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.packed import PackedBatch
from labkit.layouts.padded import PaddedBatch
from labkit.layouts.segmented import SegmentedBatch
from labkit.layouts.segments import piece_ids, segment_max, segment_sum
from labkit.layouts.sparse import SparseBatch
from labkit.layouts.spmm import spmm
from labkit.models.base import field


class Pooling(StrEnum):
    """How events become one vector; a row without events becomes 0 in each."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"


def pool(table: Tensor, batch: Batch, name: str, pooling: Pooling) -> Tensor:
    """Look up the ids of a field and pool them.

    Args:
        table: (V, D).
        batch: padded (gather, then a masked reduction), jagged (EmbeddingBag, no gathered copy), segmented (one kernel
            of lookup and sum), packed (gather, then by piece) or sparse (counts times the table).
        name: of a field with one id an event.
        pooling: how.

    Returns:
        (R, D), of packed pieces (S, D).

    Raises:
        PolicyError: a layout of another kind, or a maximum of a sparse matrix product.
        ShapeError: the batch has no such field.
    """
    if isinstance(batch, PaddedBatch):
        return _padded(functional.embedding(field(batch, name), table), batch, pooling)
    if isinstance(batch, JaggedBatch):
        return bags(table, field(batch, name), batch.offsets, pooling)
    if isinstance(batch, SegmentedBatch):
        return batch.embedding_pool(table, field(batch, name), mode=pooling)
    if isinstance(batch, PackedBatch):
        return _packed(functional.embedding(field(batch, name), table), batch, pooling)
    if isinstance(batch, SparseBatch):
        return _sparse(table, batch, name, pooling)
    raise PolicyError(
        f"pool does not take a {type(batch).__name__}: give a padded, jagged, segmented, packed or sparse batch."
    )


def bags(table: Tensor, ids: Tensor, offsets: Tensor, pooling: Pooling) -> Tensor:
    """``embedding_bag`` of offsets that include T, and of zero bags, which crash torch on some devices.

        table 0 1 | 2 3 | 4 5   ids 0 2   offsets 0 1 1 2   sum ->   0 1 | 0 0 | 4 5

    Args:
        table: (V, D).
        ids: (T,) int64.
        offsets: (R + 1,) int64; torch does not check them: ``check_batch`` does, for batches made by hand.
        pooling: how.

    Returns:
        (R, D).

    Source: the crash with zero bags: pytorch issue 175370; offsets that end early: 52851.
    """
    if offsets.shape[0] == 1:
        return table.new_zeros((0, table.shape[1]))
    return functional.embedding_bag(ids, table, offsets, mode=pooling.value, include_last_offset=True)


def _padded(events: Tensor, batch: PaddedBatch, pooling: Pooling) -> Tensor:
    match pooling:
        case Pooling.MAX:
            top = events.masked_fill(~batch.valid[..., None], -torch.inf).amax(dim=1)
            return top.masked_fill((batch.lengths == 0)[:, None], 0)
        case Pooling.SUM | Pooling.MEAN:
            weights = batch.valid.to(events.dtype)
            if pooling is Pooling.MEAN:
                weights = weights / batch.lengths.clamp(min=1)[:, None]
            return torch.bmm(weights[:, None].to(events.dtype), events)[:, 0]
    assert_never(pooling)


def _packed(events: Tensor, batch: PackedBatch, pooling: Pooling) -> Tensor:
    pieces = batch.lengths.shape[0]
    ids, events = piece_ids(batch).view(-1), events.flatten(0, 1)  # padding is a piece of its own, after all others
    match pooling:
        case Pooling.MAX:
            return segment_max(events, ids, pieces + 1)[:pieces]
        case Pooling.SUM:
            return segment_sum(events, ids, pieces + 1)[:pieces]
        case Pooling.MEAN:
            return segment_sum(events, ids, pieces + 1)[:pieces] / batch.lengths.clamp(min=1)[:, None]
    assert_never(pooling)


def _sparse(table: Tensor, batch: SparseBatch, name: str, pooling: Pooling) -> Tensor:
    counts = batch.counts
    if not isinstance(counts, dict) or name not in counts:
        raise ShapeError(
            f"the batch has no counts of {name!r}: make it with collate(policy), {name} being (T,) ids from 0 on."
        )
    row_offsets, columns, weights, row_ids = counts[name]
    match pooling:
        case Pooling.MAX:
            raise PolicyError("a sparse matrix product adds, it has no maximum: pool by sum or mean, or use jagged.")
        case Pooling.MEAN:  # by events, of which an entry may count several
            weights = weights / batch.offsets.diff().clamp(min=1)[row_ids]
        case Pooling.SUM:
            pass
    pooled: Tensor = spmm(weights.to(table.dtype), row_offsets, columns, row_ids, table)
    return pooled
