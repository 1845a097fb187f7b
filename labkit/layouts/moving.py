"""Moving a batch as a whole: to a device, and how many bytes that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from labkit.layouts.packed_rnn import PackedSequenceBatch

_B = TypeVar("_B")


def to_device(batch: _B, device: torch.device | str, non_blocking: bool = False) -> _B:
    """The same batch with every tensor on ``device``; the batch sizes of a packed sequence stay on the host.

    Args:
        batch: of any layout.
        device: ``cuda:0``, ``cpu``, ``meta``.
        non_blocking: copy while the host goes on; needs pinned memory to have an effect.

    Cost: one copy a tensor that is elsewhere.
    """
    moved: _B = _each(batch, lambda tensor: tensor.to(device, non_blocking=non_blocking))
    return moved


def batch_bytes(batch: Any) -> int:
    """Bytes of all tensors of a batch: what a copy to the device moves."""
    return sum(tensor.nbytes for tensor in _tensors(batch))


def _each(part: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Rebuild named tuples and dicts with changed tensors; numbers stay."""
    if isinstance(part, Tensor):
        return change(part)
    if isinstance(part, dict):
        return {name: _each(value, change) for name, value in part.items()}
    if isinstance(part, PackedSequenceBatch):  # torch reads its batch sizes on the host, whatever the device
        rest = {name: _each(value, change) for name, value in part._asdict().items() if name != "batch_sizes"}
        return PackedSequenceBatch(batch_sizes=part.batch_sizes, **rest)
    if hasattr(part, "_fields"):
        return type(part)(*(_each(value, change) for value in part))
    return part


def _tensors(part: Any) -> list[Tensor]:
    if isinstance(part, Tensor):
        return [part]
    if isinstance(part, PackedSequenceBatch):
        part = {name: value for name, value in part._asdict().items() if name != "batch_sizes"}
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else ()
    return [tensor for value in inside for tensor in _tensors(value)]
