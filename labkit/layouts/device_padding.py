"""Padding on the device: rows travel end to end, with the shape that was planned for them, and are padded there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout
from labkit.errors import PolicyError
from labkit.layouts.collate import Collate, end_to_end
from labkit.layouts.packed_collate import PackedCollate
from labkit.layouts.padded import PaddedBatch, fill_value, pad_rows, valid_slots


class UnpaddedBatch(NamedTuple):
    """A padded batch that is not padded yet: the bytes of its events alone cross the bus.

        values a b c d e    offsets 0 2 5 5    rows 2    width 4    ->    a b . . | c d e . | . . . .

    Attributes:
        values: (T,) or (T, D); for samples with named fields a dict of them, fixed-size fields being (R, ...).
        offsets: (R + 1,) int64; ghost rows are empty, no row is longer than ``width``.
        rows: real rows; the R - rows ghost rows come last.
        width: L that the policy planned.
        sequences: names of the fields to pad; None: values without names.
        padding_value: for the padding slots.
    """

    values: Tensor | dict[str, Tensor]
    offsets: Tensor
    rows: int
    width: int
    sequences: tuple[str, ...] | None
    padding_value: float

    def padded(self) -> PaddedBatch:
        """Pad on the device of the values: bit for bit what the host would have made.

        Cost: writes R*L*D elements a field; no host synchronization.
        """
        shape = (self.offsets.shape[0] - 1, self.width)
        lengths = self.offsets.diff()

        def rectangle(values: Tensor) -> Tensor:
            return pad_rows(values, self.offsets, shape, padding_value=self.padding_value)

        values = self.values
        if isinstance(values, dict):
            padded: Any = values | {name: rectangle(values[name]) for name in self.sequences or ()}
        else:
            padded = rectangle(values)
        return PaddedBatch(padded, lengths, valid_slots(lengths, self.width), self.rows)


@dataclass(frozen=True, eq=False, slots=True)
class UnpaddedCollate:
    """The ``collate_fn`` that leaves rows end to end; made by ``pad_on_device``. It can be pickled.

    Attributes:
        inner: the collate that would pad on the host.
    """

    inner: Collate

    @property
    def policy(self) -> BatchPolicy:
        """The policy whose batches it takes."""
        return self.inner.policy

    def __call__(self, samples: Sequence[Any]) -> UnpaddedBatch:
        """Turn the samples of one batch into tensors, none of them padded."""
        read, shape = self.inner.planned(samples)
        for name, feature in read.sequences.items():
            fill_value(self.inner.padding_value, feature.dtype, name)
        offsets = np.zeros(shape.rows + 1, dtype=np.int64)
        np.cumsum(np.pad(shape.kept, (0, shape.rows - len(samples))), out=offsets[1:])
        names = tuple(read.sequences) if read.named else None
        fill = self.inner.padding_value
        values = end_to_end(read, shape)
        return UnpaddedBatch(values, torch.from_numpy(offsets), len(samples), shape.width, names, fill)


def pad_on_device(collate: Collate | PackedCollate) -> UnpaddedCollate:
    """Make a collate whose batches are padded where they are used.

        loader = DataLoader(data, batch_sampler=..., collate_fn=pad_on_device(collate(policy)))
        for unpadded in loader:
            batch = to_device(unpadded, "cuda", non_blocking=True).padded()

    Args:
        collate: of a padded layout.

    Raises:
        PolicyError: a layout without padding.
    """
    if isinstance(collate, Collate) and collate.layout is Layout.PADDED:
        return UnpaddedCollate(collate)
    layout = collate.layout if isinstance(collate, Collate) else Layout.PACKED_ROWS
    raise PolicyError(f"pad_on_device needs a collate of the padded layout: got {layout}, which it leaves as it is.")
