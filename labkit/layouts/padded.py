"""The padded layout: rows in a rectangle, filled from the left, the most recent events kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labkit.batching.fields import whole_number
from labkit.errors import ShapeError
from labkit.jagged import Jagged
from labkit.layouts.features import Feature, bits
from labkit.layouts.segments import row_ids
from labkit.layouts.spans import Spans


class PaddedBatch(NamedTuple):
    """A batch as a rectangle.

        a b . .    lengths 2    valid 1 1 0 0
        c d e .            3          1 1 1 0
        . . . .            0          0 0 0 0    (a ghost row)      rows 2

    Attributes:
        values: (R, L) or (R, L, D); for samples with named fields a dict of them, fixed-size fields being (R, ...).
        lengths: (R,) int64, events kept of each row; 0 for ghost rows.
        valid: (R, L) bool, True = real event.
        rows: real rows; the R - rows ghost rows come last.
    """

    values: Tensor | dict[str, Tensor]
    lengths: Tensor
    valid: Tensor
    rows: int


def valid_slots(lengths: Tensor, width: int) -> Tensor:
    """(B, L) bool, True where a slot holds a real event: ``slot < length``, on the device of ``lengths``."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def to_padded(jagged: Jagged, length: int, *, padding_value: float = 0) -> Tensor:
    """Copy each row into a rectangle of width ``length``, keeping the most recent events of longer rows.

        values a b | | c d e    offsets 0 2 2 5
        length=2 -> [[a b] [0 0] [d e]]

    Args:
        jagged: B rows, values (T,) or (T, D).
        length: L, slots a row, L >= 1.
        padding_value: written to the B*L - sum(min(lengths, L)) padding slots.

    Returns:
        (B, L) or (B, L, D), dtype and device of ``values``; a new tensor.

    Raises:
        PolicyError: ``length`` < 1 or not whole.
        ShapeError: a padding value that the dtype cannot hold.

    Cost: writes B*L*D elements and copies T*D; no host synchronization.
    Source: same semantics as FBGEMM jagged_to_padded_dense, except that the oldest events are cut.
    """
    length = whole_number("length", length)
    values, offsets = _tensor(jagged.values), _tensor(jagged.offsets)
    fill = fill_value(padding_value, values.dtype, "values")
    rows = len(jagged)
    first = (offsets[1:] - length).clamp(min=offsets[:-1])  # of each row, the first event that is kept
    own = row_ids(offsets, len(values))
    event = torch.arange(len(values), device=values.device)
    slots = torch.where(event < first[own], rows * length, own * length + event - first[own])
    cells = values.new_full((rows * length + 1, *values.shape[1:]), fill)  # the last one takes what is cut
    return cells.index_copy_(0, slots, values)[:-1].view(rows, length, *values.shape[1:])


def pad_rows(values: Tensor, offsets: Tensor, shape: tuple[int, int], *, padding_value: float = 0) -> Tensor:
    """Copy rows that all fit into a rectangle, on the device that they are on.

    Args:
        values: (T,) or (T, D).
        offsets: (R + 1,) int64, no row longer than L: nothing checks that here, it was planned.
        shape: (R, L).
        padding_value: written to the padding slots.

    Returns:
        (R, L) or (R, L, D); a new tensor.

    Cost: writes R*L*D elements and copies T*D; no host synchronization.
    """
    rows, width = shape
    shift = torch.arange(rows, device=offsets.device) * width - offsets[:-1]
    slots = torch.arange(len(values), device=values.device) + shift[row_ids(offsets, len(values))]
    cells = values.new_full((rows * width, *values.shape[1:]), padding_value)
    return cells.index_copy_(0, slots, values).view(rows, width, *values.shape[1:])


def pad_feature(feature: Feature, spans: Spans, shape: tuple[int, int], *, padding_value: float, name: str) -> Tensor:
    """Copy the events of each row into a new (R, L) or (R, L, D) tensor.

    Args:
        feature: one field.
        spans: the events of each row, and their slots among all R * L.
        shape: (R, L); what is not written is padding.
        padding_value: written to the padding slots.
        name: of the field, for the message.

    Raises:
        ShapeError: a padding value that the dtype cannot hold.

    Cost: one allocation, and one copy of the events.
    """
    fill = fill_value(padding_value, feature.dtype, name)
    padded = torch.full((*shape, *feature.tail), fill, dtype=feature.dtype)
    feature.copy_to(bits(padded.flatten(0, 1)), spans)
    return padded


def _tensor(array: Any) -> Tensor:
    # torch warns about read-only memory, of which it takes a copy instead
    return array if isinstance(array, Tensor) else torch.from_numpy(np.require(array, requirements="W"))


def fill_value(value: float, dtype: torch.dtype, name: str) -> float:
    """``value`` if a tensor of the dtype can hold it; floats may round."""
    if dtype.is_floating_point or dtype.is_complex:
        return value
    least, most = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if np.isfinite(value) and value == int(value) and least <= value <= most:
        return int(value)
    raise ShapeError(
        f"padding_value {value} does not fit {name} of {dtype}: use a whole number within {least} .. {most}."
    )
