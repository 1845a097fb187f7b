"""The collate of packs: pieces laid end to end in the rows that the plan gave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.batching.pack_pieces import capacity_of, pieces_of, width_of
from labkit.batching.policy import BatchPolicy, Overflow
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.features import UNNAMED, Feature, bits, read_samples
from labkit.layouts.packed import PackedBatch, PieceSample
from labkit.layouts.padded import fill_value
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, eq=False, slots=True)
class PackedCollate:
    """The ``collate_fn`` of a packed policy; made by ``collate``. It can be pickled, so workers may be spawned.

    Attributes:
        policy: the policy whose batches it takes.
        capacity: most events of a pack.
        width: slots of a pack.
        padding_value: written to padding slots.
        sequences: fields with one entry an event; None: every field with at least one dimension.
    """

    policy: BatchPolicy
    capacity: int
    width: int
    padding_value: float
    sequences: tuple[str, ...] | None

    @classmethod
    def of_policy(
        cls,
        policy: BatchPolicy,
        histogram: LengthHistogram | None,
        padding_value: float,
        sequences: tuple[str, ...] | None,
    ) -> PackedCollate:
        """Resolve the capacity, on the lengths of the data set where it depends on them.

        Raises:
            PolicyError: no histogram though the capacity depends on it, or a policy that does not fit it.
        """
        if histogram is not None:
            pieces_of(policy, histogram)
        return cls(policy, capacity_of(policy, histogram), width_of(policy, histogram), padding_value, sequences)

    def __call__(self, samples: Sequence[Any]) -> PackedBatch:
        """Turn the pieces of one batch into tensors; see ``collate``."""
        pieces = _pieces(samples)
        read = read_samples([piece.sample for piece in pieces], self.sequences)
        self._refuse_other_lengths(pieces, read.lengths)
        at = self._place(pieces)
        shape = (at.offsets.size - 1, self.width)
        fields = {name: self._laid_out(name, feature, pieces, at, shape) for name, feature in read.sequences.items()}
        fields |= {name: feature.stacked(len(pieces)) for name, feature in read.fixed.items()}
        events = np.arange(at.lengths.sum())  # of all pieces, end to end
        before = np.repeat(np.cumsum(at.lengths) - at.lengths, at.lengths)
        slots = np.repeat(at.slots, at.lengths) + events - before
        segment = np.arange(at.lengths.size) - np.repeat(at.offsets[:-1], np.diff(at.offsets)) + 1
        return PackedBatch(
            fields if read.named else fields[UNNAMED],
            _scattered(shape, slots, events - before),
            _scattered(shape, slots, np.repeat(segment, at.lengths)),
            torch.from_numpy(at.lengths),
            torch.from_numpy(at.offsets),
            shape[0],
        )

    def _refuse_other_lengths(self, pieces: Sequence[PieceSample], lengths: NDArray[np.int64]) -> None:
        is_split = self.policy.overflow is Overflow.SPLIT
        for i, (piece, length) in enumerate(zip(pieces, lengths.tolist(), strict=True)):
            if piece.stop > length or not (is_split or piece.stop == length):
                raise PolicyError(
                    f"sample {i} of the batch has {length} events, but events {piece.start} .. {piece.stop} of it were "
                    "planned: the sampler was made with other lengths. Give it those of this data set."
                )

    def _place(self, pieces: Sequence[PieceSample]) -> _Places:
        """Lay the pieces end to end in their rows, and refuse packs that the policy does not make."""
        rows = np.array([piece.row for piece in pieces])
        lengths = np.array([piece.stop - piece.start for piece in pieces])
        offsets = np.searchsorted(rows, np.arange(rows[-1] + 2))
        most = self.policy.max_sequences_per_pack
        sums = np.add.reduceat(lengths, offsets[:-1])
        for what, found, limit, name in (
            ("packs", offsets.size - 1, self.policy.rows, "rows"),
            ("events in a pack", int(sums.max()), self.capacity, "capacity"),
            ("sequences in a pack", int(np.diff(offsets).max()), most, "max_sequences_per_pack"),
        ):
            if limit is not None and found > limit:
                raise PolicyError(
                    f"batch of {found} {what}, but packed makes at most {name} {limit}: "
                    "use BucketBatchSampler with the same policy and lengths."
                )
        before = np.cumsum(lengths) - lengths
        slots = rows * self.width + before - before[offsets[:-1]][rows]
        return _Places(lengths, offsets, slots)

    def _laid_out(
        self, name: str, feature: Feature, pieces: Sequence[PieceSample], at: _Places, shape: tuple[int, int]
    ) -> Tensor:
        """(R, W) or (R, W, D) of one field. Cost: one allocation; one slice copy a piece."""
        fill = fill_value(self.padding_value, feature.dtype, name)
        padded = torch.full((*shape, *feature.tail), fill, dtype=feature.dtype)
        cells = bits(padded.view(-1, *feature.tail))
        for slot, piece, row in zip(at.slots.tolist(), pieces, feature.rows, strict=True):
            if piece.stop > piece.start:  # an empty list says nothing about D
                cells[slot : slot + piece.stop - piece.start] = row[piece.start : piece.stop]
        return padded


class _Places(NamedTuple):
    """Pieces in their rows: (S,) lengths, (R + 1,) offsets of the pieces of each row, (S,) first slot of all R * W."""

    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64]


def _pieces(samples: Sequence[Any]) -> list[PieceSample]:
    """The samples of a batch as pieces, by rows from 0."""
    if not len(samples):
        raise PolicyError("batch of 0 packs: no policy makes one. Use BucketBatchSampler with the same policy.")
    for i, sample in enumerate(samples):
        if not isinstance(sample, PieceSample):
            raise ShapeError(
                f"sample {i} of the batch is a {type(sample).__name__} that does not say which pack it belongs to: "
                "wrap the data set, DataLoader(PackedDataset(dataset), batch_sampler=BucketBatchSampler(...))."
            )
    rows = [sample.row for sample in samples]
    if rows[0] != 0 or any(after - before not in (0, 1) for before, after in pairwise(rows)):
        raise PolicyError(
            f"pieces must come pack by pack, from 0: got packs {', '.join(map(str, rows[:8]))}"
            f"{', ..' if len(rows) > 8 else ''}. Use BucketBatchSampler with the same policy."
        )
    return list(samples)


def _scattered(shape: tuple[int, int], slots: NDArray[np.int64], values: NDArray[np.int64]) -> Tensor:
    cells = np.zeros(shape, dtype=np.int64)
    cells.reshape(-1)[slots] = values
    return torch.from_numpy(cells)
