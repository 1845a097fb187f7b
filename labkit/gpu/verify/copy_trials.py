"""Trials of the copies between jagged arrays and rectangles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.ops.copies import jagged_to_padded_cuda, padded_to_jagged_cuda
from labkit.gpu.verify.ragged import EVENTS, OFFSETS, ROWS, random
from labkit.gpu.verify.trial import Array, Compared, Trial
from labkit.reference import jagged as reference

_HOST = OFFSETS.numpy()
#: Rows cut, rows cut and filled, no row cut.
_WIDTHS = (40, 1, 700)
#: Type and shape of an event: units of 16, 8, 4, 2, 1 bytes, and several of a unit.
_KINDS: tuple[tuple[torch.dtype, tuple[int, ...]], ...] = (
    (torch.float32, (12,)),
    (torch.float32, (3,)),
    (torch.float32, ()),
    (torch.int64, ()),
    (torch.float16, (3,)),
    (torch.uint8, (5,)),
)


def padded_trials() -> Iterator[Trial]:
    """``jagged_to_padded``."""
    for dtype, tail in _KINDS:
        for width in _WIDTHS:
            yield Trial(
                f"{dtype} {tail}, L={width}", partial(_to_padded, dtype, tail, width), sample=width == _WIDTHS[0]
            )
    yield Trial("no rows, no events", _padded_nothing, once=True)


def jagged_trials() -> Iterator[Trial]:
    """``padded_to_jagged``."""
    for dtype, tail in _KINDS:
        for width in _WIDTHS:
            yield Trial(
                f"{dtype} {tail}, L={width}", partial(_to_jagged, dtype, tail, width), sample=width == _WIDTHS[0]
            )
    yield Trial("no rows, no events", _jagged_nothing, once=True)


@cache
def _case(dtype: torch.dtype, tail: tuple[int, ...], width: int) -> tuple[Tensor, Tensor, Array, Array]:
    values, padded = (random(0, EVENTS, *tail) * 20).to(dtype), (random(1, ROWS, width, *tail) * 20).to(dtype)
    to_padded = reference.to_padded(values.numpy(), _HOST, width, 7)
    return values, padded, to_padded, reference.to_jagged(padded.numpy(), _HOST, 9)


def _to_padded(dtype: torch.dtype, tail: tuple[int, ...], width: int) -> Iterator[Compared]:
    values, _, expected, _ = _case(dtype, tail, width)
    yield Compared("slots", jagged_to_padded_cuda(values, OFFSETS, width, 7), expected)


def _to_jagged(dtype: torch.dtype, tail: tuple[int, ...], width: int) -> Iterator[Compared]:
    _, padded, _, expected = _case(dtype, tail, width)
    yield Compared("events", padded_to_jagged_cuda(padded, OFFSETS, EVENTS, 9), expected)


def _padded_nothing() -> Iterator[Compared]:
    for rows in (0, 3):
        found = jagged_to_padded_cuda(torch.zeros(0, 4), torch.zeros(rows + 1, dtype=torch.int64), 2, 7)
        yield Compared("slots", found, np.full((rows, 2, 4), 7.0))


def _jagged_nothing() -> Iterator[Compared]:
    for rows in (0, 3):
        found = padded_to_jagged_cuda(torch.zeros(rows, 2, 4), torch.zeros(rows + 1, dtype=torch.int64), 0, 9)
        yield Compared("events", found, np.zeros((0, 4)))
