"""The collate of packs: pieces laid end to end in the rows that the plan gave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.batching.pack_pieces import capacity_of, pieces_of, width_of
from labkit.batching.policy import BatchPolicy, Overflow
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.columns import read_batch
from labkit.layouts.packed import PackedBatch
from labkit.layouts.padded import pad_feature
from labkit.layouts.pieces import Pieces, PieceSample
from labkit.layouts.spans import Spans
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
        read = read_batch(pieces.samples, self.sequences)
        self._refuse_other_lengths(pieces, read.lengths)
        at = self._place(pieces)
        lengths = pieces.stops - pieces.starts
        spans, shape = Spans(pieces.starts, lengths, at.slots, read.starts), (at.offsets.size - 1, self.width)
        fields = {
            name: pad_feature(feature, spans, shape, padding_value=self.padding_value, name=name)
            for name, feature in read.sequences.items()
        }
        segment = np.arange(lengths.size) - np.repeat(at.offsets[:-1], np.diff(at.offsets)) + 1
        return PackedBatch(
            read.with_fixed(fields, len(pieces)),
            _scattered(shape, spans, spans.steps),
            _scattered(shape, spans, np.repeat(segment, lengths)),
            torch.from_numpy(lengths),
            torch.from_numpy(at.offsets),
            shape[0],
        )

    def _refuse_other_lengths(self, pieces: Pieces, lengths: NDArray[np.int64]) -> None:
        wrong = pieces.stops > lengths
        if self.policy.overflow is not Overflow.SPLIT:
            wrong |= pieces.stops != lengths
        if wrong.any():
            i = int(np.argmax(wrong))
            raise PolicyError(
                f"sample {i} of the batch has {lengths[i]} events, but events {pieces.starts[i]} .. {pieces.stops[i]} "
                "of it were planned: the sampler was made with other lengths. Give it those of this data set."
            )

    def _place(self, pieces: Pieces) -> _Places:
        """Lay the pieces end to end in their rows, and refuse packs that the policy does not make."""
        rows, lengths = pieces.rows, pieces.stops - pieces.starts
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
        return _Places(offsets, slots)


class _Places(NamedTuple):
    """Pieces in their rows: (R + 1,) offsets of the pieces of each row, (S,) first slot of all R * W."""

    offsets: NDArray[np.int64]
    slots: NDArray[np.int64]


def _pieces(samples: Sequence[Any]) -> Pieces:
    """The samples of a batch as pieces, by rows from 0."""
    if not len(samples):
        raise PolicyError("batch of 0 packs: no policy makes one. Use BucketBatchSampler with the same policy.")
    pieces = samples if isinstance(samples, Pieces) else Pieces.of(_checked(samples))
    rows = pieces.rows
    if rows[0] != 0 or np.any((np.diff(rows) < 0) | (np.diff(rows) > 1)):
        raise PolicyError(
            f"pieces must come pack by pack, from 0: got packs {', '.join(map(str, rows[:8].tolist()))}"
            f"{', ..' if len(rows) > 8 else ''}. Use BucketBatchSampler with the same policy."
        )
    return pieces


def _checked(samples: Sequence[Any]) -> Sequence[PieceSample]:
    for i, sample in enumerate(samples):
        if not isinstance(sample, PieceSample):
            raise ShapeError(
                f"sample {i} of the batch is a {type(sample).__name__} that does not say which pack it belongs to: "
                "wrap the data set, DataLoader(PackedDataset(dataset), batch_sampler=BucketBatchSampler(...))."
            )
    return samples


def _scattered(shape: tuple[int, int], spans: Spans, values: NDArray[np.int64]) -> Tensor:
    cells = np.zeros(shape, dtype=np.int64)
    cells.reshape(-1)[spans.target] = values
    return torch.from_numpy(cells)
