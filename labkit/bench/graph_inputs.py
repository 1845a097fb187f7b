"""Batches as inputs of a CUDA graph: which of them can share one, copies that stay in place, and copying into those.

A batch is a tensor, or a named tuple, dataclass, dict, tuple or list of batches and of plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

B = TypeVar("B")


def shape_key(batch: Any, device: torch.device) -> Hashable:
    """What a graph has fixed for good: equal keys can be replayed by one graph.

    Of a tensor on the device: shape and dtype. All else is baked in with its value: plain values, and tensors
    elsewhere, which only the host has read.

    Args:
        batch: a batch.
        device: of the graph.

    Raises:
        TypeError: something in the batch that cannot be compared.
    """
    if isinstance(batch, Tensor):
        kind = (tuple(batch.shape), batch.dtype, batch.device)
        if batch.device.type == device.type:
            return kind
        return (*kind, batch.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    parts = _parts(batch)
    if parts is None:
        if not isinstance(batch, Hashable):
            raise TypeError(
                f"graphs cannot tell batches apart by a {type(batch).__name__}: use tensors and plain values"
            )
        return (type(batch), batch)
    return (type(batch), *((name, shape_key(part, device)) for name, part in parts.items()))


def static_copy(batch: B, device: torch.device) -> B:
    """The same batch with tensors of its own in the place of those on the device: the addresses of a graph."""
    copied: B = _mapped(lambda tensor: tensor.clone() if tensor.device.type == device.type else tensor, batch)
    return copied


def copy_into(static: Any, batch: Any, device: torch.device) -> None:
    """Copy the tensors of a batch into those of its static copy; nothing waits for it."""
    if isinstance(static, Tensor):
        if static.device.type == device.type:
            static.copy_(batch, non_blocking=True)
        return
    given = _parts(batch) or {}
    for name, part in (_parts(static) or {}).items():
        copy_into(part, given[name], device)


def _parts(batch: Any) -> Mapping[Any, Any] | None:
    """The parts of a batch by name or position; None of a plain value."""
    if isinstance(batch, Mapping):
        return batch
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return dict(zip(batch._fields, batch, strict=True))
    if isinstance(batch, tuple | list):
        return dict(enumerate(batch))
    if is_dataclass(batch) and not isinstance(batch, type):
        return {field.name: getattr(batch, field.name) for field in fields(batch)}
    return None


def _mapped(change: Callable[[Tensor], Tensor], batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return change(batch)
    parts = _parts(batch)
    if parts is None:
        return batch
    changed = {name: _mapped(change, part) for name, part in parts.items()}
    if isinstance(batch, Mapping):
        return changed
    if isinstance(batch, list) or (isinstance(batch, tuple) and not hasattr(batch, "_fields")):
        return type(batch)(changed.values())
    return type(batch)(**changed)
