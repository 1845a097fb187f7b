"""The packed layout: several sequences in one row, kept apart by a block-diagonal mask, positions from 0 for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from labkit.batching.pieces import PieceIndex
from labkit.errors import ShapeError
from labkit.layouts.columns import RaggedColumns
from labkit.layouts.pieces import Pieces
from labkit.layouts.pieces import PieceSample as PieceSample


class MapDataset(Protocol):
    """A data set with samples by number."""

    def __getitem__(self, index: int, /) -> Any: ...

    def __len__(self) -> int: ...


class PackedDataset:
    """A data set whose samples know their place in a pack: what ``packed`` needs between sampler and collate.

        loader = DataLoader(
            PackedDataset(dataset), batch_sampler=BucketBatchSampler(lengths, policy), collate_fn=collate(policy)
        )

    Args:
        dataset: any map-style data set; where it has ``__getitems__``, a whole batch is fetched by it at once.
    """

    def __init__(self, dataset: MapDataset) -> None:
        """Wrap a data set."""
        self.dataset = dataset

    def __len__(self) -> int:
        """Samples of the data set, not pieces."""
        return len(self.dataset)

    def __getitem__(self, piece: PieceIndex) -> PieceSample:
        """The sample with its place.

        Raises:
            ShapeError: a bare index, which says nothing of a pack.
        """
        return self.__getitems__([piece])[0]

    def __getitems__(self, pieces: Sequence[PieceIndex]) -> Sequence[PieceSample]:
        """The samples of a batch; a sequence of which several pieces are in it is fetched once.

        Raises:
            ShapeError: a bare index, which says nothing of a pack.
        """
        if set(map(type, pieces)) != {PieceIndex}:
            _refuse_bare_indices(pieces)
        numbers = list(dict.fromkeys(map(int, pieces)))
        many = getattr(self.dataset, "__getitems__", None)
        samples = many(numbers) if callable(many) else [self.dataset[number] for number in numbers]
        if isinstance(samples, RaggedColumns):
            return _as_columns(samples, numbers, pieces)
        found = dict(zip(numbers, samples, strict=True))
        return [PieceSample(found[int(piece)], piece.row, piece.start, piece.stop) for piece in pieces]


def _refuse_bare_indices(pieces: Sequence[Any]) -> None:
    for piece in pieces:
        if not isinstance(piece, PieceIndex):
            raise ShapeError(
                f"PackedDataset takes the indices of BucketBatchSampler with a packed policy: got {piece!r} "
                f"({type(piece).__name__}). Other samplers and strategies take the data set itself."
            )


def _as_columns(samples: RaggedColumns, numbers: list[int], pieces: Sequence[PieceIndex]) -> Pieces:
    """The pieces, each with its own columns: a sequence in several pieces is several times in them, at no cost."""

    def array(found: Iterable[int]) -> NDArray[np.int64]:
        return np.fromiter(found, np.int64, len(pieces))

    place = dict(zip(numbers, range(len(numbers)), strict=True))
    bounds = (array(map(attrgetter(name), pieces)) for name in ("row", "start", "stop"))
    return Pieces(samples.take(array(map(place.__getitem__, pieces))), *bounds)


class PackedBatch(NamedTuple):
    """A batch of packs.

        values a b c d   positions 0 1 2 0   segment_ids 1 1 1 2   lengths 3 1 2   piece_offsets 0 2 3
               e f . .             0 1 0 0               1 1 0 0

    Piece s of row r has number ``piece_offsets[r] + s - 1`` in ``lengths`` and in fields of a fixed size; ``s`` is its
    segment id. A piece of a split sequence is a segment like any other, with positions from 0: what it does not attend
    to is not counted either, and no position is ever above the width.

    Attributes:
        values: (R, W) or (R, W, D); for samples with named fields a dict of them, fixed-size fields being (S, ...).
        positions: (R, W) int64, position of an event in its piece; 0 in padding.
        segment_ids: (R, W) int64, 1, 2, .. the piece of its row that an event belongs to; 0 in padding.
        lengths: (S,) int64, events of each piece, row after row; empty sequences are pieces of length 0.
        piece_offsets: (R + 1,) int64, row r has the pieces ``piece_offsets[r]`` to ``piece_offsets[r + 1] - 1``.
        rows: R, packs of the batch.
    """

    values: Tensor | dict[str, Tensor]
    positions: Tensor
    segment_ids: Tensor
    lengths: Tensor
    piece_offsets: Tensor
    rows: int


def block_mask(segment_ids: Tensor, *, causal: bool = False) -> Tensor:
    """Who may attend to whom: events of the same piece, and with ``causal`` none that comes later.

        segment_ids 1 1 2, causal -> [[1 0 0] [1 1 0] [0 0 1]]

    Args:
        segment_ids: (R, W), 0 = padding.
        causal: leave out later events.

    Returns:
        (R, W, W) bool on the device of ``segment_ids``, True = attend, as ``scaled_dot_product_attention`` means it:
        ``attn_mask=mask[:, None]``. Rows of padding attend to nothing; its result there is 0, that of a softmax written
        by hand NaN.

    Raises:
        ShapeError: not (R, W).

    Cost: R * W**2 bytes.
    """
    if segment_ids.ndim != 2:
        raise ShapeError(f"segment_ids must be (R, W): got shape {tuple(segment_ids.shape)}.")
    mask = (segment_ids[:, :, None] == segment_ids[:, None, :]) & (segment_ids != 0)[:, :, None]
    return mask.tril_() if causal else mask
