"""``labkit::jagged_to_padded`` and ``labkit::padded_to_jagged``: each the inverse and the backward of the other."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.errors import KernelLaunchError, ShapeError
from labkit.gpu.arguments import UNIT_BYTES
from labkit.gpu.launch import launch
from labkit.gpu.ops.checks import check_offsets, check_row_count, row_ids
from labkit.gpu.regimes import BLOCK

_INT_MAX = 2**31 - 1
_TILE = 4 * BLOCK  # of kernels/padded_to_jagged.cu


@torch.library.custom_op("labkit::jagged_to_padded", mutates_args=(), device_types="cpu")
def jagged_to_padded(values: Tensor, offsets: Tensor, width: int, fill: float) -> Tensor:
    """Copy each row into a rectangle, filled from the left, keeping the most recent events of longer rows.

        values a b | | c d e    offsets 0 2 2 5    width 2 -> [[a b] [. .] [d e]]

    Args:
        values: (T, ...) of any dtype.
        offsets: (B+1,) int64.
        width: L, at least 1.
        fill: written to padding slots.

    Returns:
        (B, L, ...).

    Raises:
        ShapeError: a width below 1 or above 2**31 - 1, or offsets that are not (B+1,).
        KernelArgumentError: offsets of another dtype, tensors on two devices or not contiguous.

    Cost: reads sum(min(length, L)) events, writes B*L; no host synchronization.
    """
    rows = _check(values, offsets, width)
    if not values.shape[0]:
        return values.new_full((rows, width, *values.shape[1:]), fill)
    kept = offsets.diff().clamp(max=width)
    slots = torch.arange(width, device=values.device)
    padded = values[((offsets[1:] - kept)[:, None] + slots).clamp(max=values.shape[0] - 1)]
    empty = (slots >= kept[:, None]).view(rows, width, *[1] * (values.ndim - 1))
    return padded.masked_fill_(empty, fill)


@torch.library.custom_op("labkit::padded_to_jagged", mutates_args=(), device_types="cpu")
def padded_to_jagged(padded: Tensor, offsets: Tensor, events: int, fill: float) -> Tensor:
    """Copy the slots of a rectangle back to the events they came from; events that had no slot get the fill.

    Args:
        padded: (B, L, ...) of any dtype.
        offsets: (B+1,) int64.
        events: T.
        fill: for the events before the last L of a row.

    Returns:
        (T, ...).

    Raises:
        ShapeError: a rectangle of other rows than the offsets.
        KernelArgumentError: offsets of another dtype, tensors on two devices or not contiguous.

    Cost: reads sum(min(length, L)) events, writes T; no host synchronization.
    """
    rows = _check_padded(padded, offsets)
    width, ids = padded.shape[1], row_ids(offsets, events)
    lengths = offsets.diff()
    slots = torch.arange(events, device=padded.device) - (offsets[:-1] + (lengths - width).clamp(min=0))[ids]
    values = padded.flatten(0, 1)[ids * width + slots.clamp(min=0)] if rows else padded.new_empty(0, *padded.shape[2:])
    return values.masked_fill_((slots < 0).view(-1, *[1] * (padded.ndim - 2)), fill)


@jagged_to_padded.register_kernel("cuda")
def jagged_to_padded_cuda(values: Tensor, offsets: Tensor, width: int, fill: float) -> Tensor:
    """``jagged_to_padded`` by its kernels."""
    rows = _check(values, offsets, width)
    padded = values.new_empty((rows, width, *values.shape[1:]))
    _launch("jagged_to_padded", padded, values, offsets, width, fill)
    return padded


@padded_to_jagged.register_kernel("cuda")
def padded_to_jagged_cuda(padded: Tensor, offsets: Tensor, events: int, fill: float) -> Tensor:
    """``padded_to_jagged`` by its kernels."""
    _check_padded(padded, offsets)
    values = padded.new_empty((events, *padded.shape[2:]))
    _launch("padded_to_jagged", values, padded, offsets, padded.shape[1], fill)
    return values


@jagged_to_padded.register_fake
def _(values: Tensor, offsets: Tensor, width: int, fill: float) -> Tensor:
    return values.new_empty((offsets.shape[0] - 1, width, *values.shape[1:]))


@padded_to_jagged.register_fake
def _(padded: Tensor, offsets: Tensor, events: int, fill: float) -> Tensor:
    return padded.new_empty((events, *padded.shape[2:]))


def copy_unit(row_bytes: int, *addresses: int) -> str:
    """The largest unit in which rows of ``row_bytes`` bytes at these addresses can be moved."""
    return next(unit for unit, size in UNIT_BYTES.items() if not any(n % size for n in (row_bytes, *addresses)))


@lru_cache(maxsize=64)
def fill_pattern(fill: float, dtype: torch.dtype) -> np.uint64:
    """The fill as 8 bytes, an element repeated."""
    element = torch.full((1,), fill, dtype=dtype)
    element = element.repeat(8 // element.itemsize) if element.itemsize < 8 else element
    return np.uint64(int.from_bytes(bytes(element.view(torch.uint8).tolist()), "little"))


def index_type(units: int) -> str:
    """C++ type that numbers so many units, and one more block of them, with which a loop ends."""
    return "unsigned" if units + BLOCK < 2**32 else "unsigned long long"


def _launch(op: str, out: Tensor, given: Tensor, offsets: Tensor, width: int, fill: float) -> None:
    rows, tail = offsets.shape[0] - 1, (out if op == "jagged_to_padded" else given).shape[2:]
    if given.itemsize > 8:
        raise KernelLaunchError(f"{op} moves elements of up to 8 bytes, got {given.dtype}: view it as real numbers.")
    row_bytes = math.prod(tail) * given.itemsize
    if not out.numel():
        return
    unit = copy_unit(row_bytes, out.data_ptr(), given.data_ptr())
    units = row_bytes // UNIT_BYTES[unit]
    check_row_count(rows)
    if units > _INT_MAX:
        raise KernelLaunchError(f"{op} moves events of up to {_INT_MAX} units, got {units}: split the features.")
    moved = out.numel() * out.itemsize // UNIT_BYTES[unit]
    per_block = BLOCK if op == "jagged_to_padded" else _TILE
    blocks = -(-moved // per_block)
    sizes = (np.int32(rows), np.int32(width), np.int32(units))
    arguments = (out, given, offsets, fill_pattern(fill, given.dtype), *sizes)
    launch(op, f"{op}<{unit}, {index_type(blocks * per_block)}>", blocks, arguments, out.device)


def _check(values: Tensor, offsets: Tensor, width: int) -> int:
    if not 1 <= width <= _INT_MAX:
        raise ShapeError(f"width must be 1 to {_INT_MAX}: got {width}. A padded row has at least one slot.")
    if values.ndim < 1:
        raise ShapeError("values must be (T, ...): got a number. Give one entry an event.")
    return check_offsets(offsets, values)


def _check_padded(padded: Tensor, offsets: Tensor) -> int:
    rows = check_offsets(offsets, padded)
    if padded.ndim < 2 or padded.shape[0] != rows or not 1 <= padded.shape[1] <= _INT_MAX:
        raise ShapeError(
            f"padded must be (B, L, ...) with B={rows} and L of 1 to {_INT_MAX}: got {tuple(padded.shape)}."
        )
    return rows


def _save_padded(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, offsets, _, _ = inputs
    ctx.save_for_backward(offsets)
    ctx.events = values.shape[0]


def _save_jagged(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    padded, offsets, _, _ = inputs
    ctx.save_for_backward(offsets)
    ctx.width = padded.shape[1]


def _padded_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return padded_to_jagged(grad.contiguous(), *ctx.saved_tensors, ctx.events, 0.0), None, None, None


def _jagged_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return jagged_to_padded(grad.contiguous(), *ctx.saved_tensors, ctx.width, 0.0), None, None, None


jagged_to_padded.register_autograd(_padded_backward, setup_context=_save_padded)
padded_to_jagged.register_autograd(_jagged_backward, setup_context=_save_jagged)
