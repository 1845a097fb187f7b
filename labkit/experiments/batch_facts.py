"""What is read off a batch from its shapes alone: its shape in words."""

from __future__ import annotations

from typing import Any

import torch


def shape_text(batch: Any) -> str:
    """The shape of a batch for a message: ``256 x 4096 = 1048576 slots``, or ``900 rows, 16384 events``.

    It is read from shapes alone. The batch may lie on a device that has just run out of memory: nothing is computed.
    """
    tensors = [t for t in _tensors(getattr(batch, "values", batch)) if t.ndim]
    valid = getattr(batch, "valid", None)
    segment_ids = getattr(batch, "segment_ids", None)
    rectangle = valid if valid is not None else segment_ids
    if rectangle is not None:
        rows, width = rectangle.shape
        return f"{rows} x {width} = {rows * width} slots"
    rows = getattr(batch, "rows", None)
    events = max((len(t) for t in tensors), default=0)
    return f"{rows} rows, {events} events"


def _tensors(part: Any) -> list[torch.Tensor]:
    if isinstance(part, torch.Tensor):
        return [part]
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else ()
    return [tensor for value in inside for tensor in _tensors(value)]
