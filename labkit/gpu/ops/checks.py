"""Checks that every op of rows makes before it computes, on each device alike and without asking one for a number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labkit.errors import KernelArgumentError, KernelLaunchError, ShapeError
from labkit.gpu.regimes import HEADER, MAX_ROWS

#: Attribute of bins: for how many rows and which thresholds they were made. What is in them only the device knows.
_MADE_FOR = "labkit_made_for"


def mark_bins(bins: Tensor, rows: int, thresholds: Sequence[int]) -> Tensor:
    """``bins``, which from now on say for what they were made; a copy of them does not."""
    setattr(bins, _MADE_FOR, (rows, tuple(thresholds)))
    return bins


def check_offsets(offsets: Tensor, *others: Tensor) -> int:
    """B, after a look at dtype, rank and devices; ``labkit.jagged`` has validated what is in them.

    Raises:
        ShapeError: not (B+1,).
        KernelArgumentError: not int64, not contiguous, or on another device than the other tensors.
    """
    if offsets.ndim != 1 or offsets.shape[0] < 1:
        raise ShapeError(f"offsets must be (B+1,): got {tuple(offsets.shape)}. Rebuild with Jagged.from_lengths.")
    if offsets.dtype is not torch.int64:
        raise KernelArgumentError(f"offsets must be int64: got {offsets.dtype}. Convert them with .long().")
    for tensor in (offsets, *others):
        if tensor.device != offsets.device:
            raise KernelArgumentError(
                f"all tensors must be on one device: got {offsets.device} and {tensor.device}. Move one of them."
            )
        if not tensor.is_contiguous():
            raise KernelArgumentError(
                f"tensors must be contiguous: got strides {tensor.stride()} of shape {tuple(tensor.shape)}. "
                "Call .contiguous()."
            )
    return offsets.shape[0] - 1


def check_matrix(name: str, values: Tensor, rows: int | None = None) -> None:
    """Refuse what is not (rows, D); None: any number of rows.

    Raises:
        ShapeError: another shape, or D of 0.
    """
    if values.ndim != 2 or values.shape[1] < 1 or (rows is not None and values.shape[0] != rows):
        expected = "(T, D)" if rows is None else f"({rows}, D)"
        raise ShapeError(f"{name} must be {expected} with D >= 1: got {tuple(values.shape)}. Reshape it.")


def check_of_rows(name: str, given: Tensor, shape: Sequence[int], dtype: torch.dtype) -> None:
    """Refuse what the forward of an op cannot have returned for these rows.

    Raises:
        ShapeError: another shape.
        KernelArgumentError: another dtype.
    """
    if tuple(given.shape) != tuple(shape):
        raise ShapeError(f"{name} must be {tuple(shape)}: got {tuple(given.shape)}. Pass what the forward returned.")
    if given.dtype is not dtype:
        raise KernelArgumentError(f"{name} must be {dtype}: got {given.dtype}. Pass what the forward returned.")


def check_per_event(name: str, given: Tensor, events: int, dtype: torch.dtype) -> None:
    """Refuse what is not (T,) of a dtype.

    Raises:
        ShapeError: another shape.
        KernelArgumentError: another dtype.
    """
    if given.ndim != 1 or given.shape[0] != events:
        raise ShapeError(f"{name} must be (T,) = ({events},): got {tuple(given.shape)}. One entry an event.")
    if given.dtype is not dtype:
        raise KernelArgumentError(f"{name} must be {dtype}: got {given.dtype}. Convert it with .to({dtype}).")


def check_bins(bins: Tensor, rows: int, thresholds: Sequence[int]) -> None:
    """Refuse bins that are not those of ``rows`` rows and these thresholds, as far as the host can know.

    Raises:
        ShapeError: too few entries, or not three thresholds.
        KernelArgumentError: not int32; made by ``bin_rows`` for another number of rows or other thresholds, which would
            make a kernel leave rows out or write beyond its workspace. A copy, or what comes out of a compiled graph,
            is believed.
    """
    if bins.dtype is not torch.int32:
        raise KernelArgumentError(f"bins must be int32: got {bins.dtype}. Make them with bin_rows.")
    if bins.ndim != 1 or bins.shape[0] < HEADER + 1 + rows or len(thresholds) != 3:
        raise ShapeError(
            f"bins must have {HEADER + 1} + giants + B entries, and three thresholds: got {tuple(bins.shape)} for "
            f"B={rows}, thresholds {list(thresholds)}. Make them with bin_rows and pass the same thresholds."
        )
    given = (rows, tuple(thresholds))
    if (made_for := getattr(bins, _MADE_FOR, given)) != given:
        raise KernelArgumentError(
            f"bins were made for {made_for[0]} rows and thresholds {list(made_for[1])}: got {rows} rows and "
            f"{list(thresholds)}. Call bin_rows with these offsets and thresholds."
        )


def check_row_count(rows: int) -> None:
    """Refuse more rows, or rows times tiles, than the kernels can number.

    Raises:
        KernelLaunchError: above 2**31 - 1024.
    """
    if rows > MAX_ROWS:
        raise KernelLaunchError(
            f"a launch takes up to {MAX_ROWS} rows (times tiles of 128 features), got {rows}: split it."
        )


def row_ids(offsets: Tensor, events: int) -> Tensor:
    """(T,) int64, the row of each event; no host synchronization."""
    rows = torch.arange(offsets.shape[0] - 1, device=offsets.device)
    return rows.repeat_interleave(offsets.diff(), output_size=events)
