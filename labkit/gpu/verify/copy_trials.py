"""Trials of the copies between jagged arrays and rectangles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch import launch, launching_by
from labkit.gpu.ops.copies import jagged_to_padded_cuda, padded_to_jagged_cuda
from labkit.gpu.verify.far_trials import far_to_jagged, far_to_padded
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
#: Rows beyond 4096 and 65 536 events, of which the most recent are kept: few, most, all.
_LONG_OFFSETS = torch.tensor([0, 5_000, 5_003, 75_003, 79_100])
_LONG_WIDTHS = (100, 4_097, 70_000)

_Copy = Callable[[torch.dtype, tuple[int, ...], int], Iterator[Compared]]


def padded_trials() -> Iterator[Trial]:
    """``jagged_to_padded``."""
    for dtype, tail in _KINDS:
        for width in _WIDTHS:
            yield Trial(
                f"{dtype} {tail}, L={width}", partial(_to_padded, dtype, tail, width), sample=width == _WIDTHS[0]
            )
        yield Trial(f"{dtype} {tail}, 64-bit indices", partial(_wide, _to_padded, dtype, tail), sample=True)
    yield Trial("long rows", _long_to_padded, once=True)
    yield Trial("no rows, no events", _padded_nothing, once=True)
    yield from far_to_padded()


def jagged_trials() -> Iterator[Trial]:
    """``padded_to_jagged``."""
    for dtype, tail in _KINDS:
        for width in _WIDTHS:
            yield Trial(
                f"{dtype} {tail}, L={width}", partial(_to_jagged, dtype, tail, width), sample=width == _WIDTHS[0]
            )
        yield Trial(f"{dtype} {tail}, 64-bit indices", partial(_wide, _to_jagged, dtype, tail), sample=True)
    yield Trial("long rows", _long_to_jagged, once=True)
    yield Trial("no rows, no events", _jagged_nothing, once=True)
    yield from far_to_jagged()


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


def _wide(copy: _Copy, dtype: torch.dtype, tail: tuple[int, ...]) -> Iterator[Compared]:
    """With the indices that only launches of 2**32 threads would choose."""
    outside = copy_context()

    def launch_wide(op: str, expression: str, *rest: Any) -> None:
        outside.run(launch, op, expression.replace(", unsigned>", ", unsigned long long>"), *rest)

    with launching_by(launch_wide):
        found = list(copy(dtype, tail, _WIDTHS[0]))
    yield from found


@cache
def _long_values() -> tuple[Tensor, Array]:
    values = torch.arange(int(_LONG_OFFSETS[-1])).remainder(32_749).to(torch.int16)
    return values, values.numpy()


def _long_to_padded() -> Iterator[Compared]:
    values, host = _long_values()
    for width in _LONG_WIDTHS:
        found = jagged_to_padded_cuda(values, _LONG_OFFSETS, width, -1)
        yield Compared("slots", found, reference.to_padded(host, _LONG_OFFSETS.numpy(), width, -1))


def _long_to_jagged() -> Iterator[Compared]:
    values, host = _long_values()
    for width in _LONG_WIDTHS:
        padded = reference.to_padded(host, _LONG_OFFSETS.numpy(), width, -1)
        found = padded_to_jagged_cuda(torch.from_numpy(padded), _LONG_OFFSETS, len(values), -1)
        yield Compared("events", found, reference.to_jagged(padded, _LONG_OFFSETS.numpy(), -1))


def _padded_nothing() -> Iterator[Compared]:
    for rows in (0, 3):
        found = jagged_to_padded_cuda(torch.zeros(0, 4), torch.zeros(rows + 1, dtype=torch.int64), 2, 7)
        yield Compared("slots", found, np.full((rows, 2, 4), 7.0))


def _jagged_nothing() -> Iterator[Compared]:
    for rows in (0, 3):
        found = padded_to_jagged_cuda(torch.zeros(rows, 2, 4), torch.zeros(rows + 1, dtype=torch.int64), 0, 9)
        yield Compared("events", found, np.zeros((0, 4)))
