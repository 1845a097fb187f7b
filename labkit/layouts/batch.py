"""Batch: what a model gets, in one of the layouts."""

from __future__ import annotations

from typing import TypeAlias

from labkit.batching.strategies import Layout
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.packed import PackedBatch
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.layouts.segmented import SegmentedBatch
from labkit.layouts.sparse import SparseBatch

Batch: TypeAlias = PaddedBatch | JaggedBatch | SegmentedBatch | PackedBatch | PackedSequenceBatch | SparseBatch

#: The kind of batch of each layout.
BATCHES: dict[Layout, type[Batch]] = {
    Layout.PADDED: PaddedBatch,
    Layout.JAGGED: JaggedBatch,
    Layout.SEGMENTED: SegmentedBatch,
    Layout.PACKED_ROWS: PackedBatch,
    Layout.PACKED_SEQUENCE: PackedSequenceBatch,
    Layout.SPARSE: SparseBatch,
}

_LAYOUTS = {kind: layout for layout, kind in BATCHES.items()}


def layout_of(batch: Batch) -> Layout:
    """The layout of a batch."""
    return _LAYOUTS[type(batch)]
