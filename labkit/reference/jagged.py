"""NumPy twins of jagged_to_padded and padded_to_jagged: obvious loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def to_padded(values: Array, offsets: Array, width: int, fill: float = 0) -> Array:
    """(B, L) or (B, L, D) of the dtype of ``values`` (T,) or (T, D): the last L events of each row, then fill."""
    rows = len(offsets) - 1
    padded = np.full((rows, width, *values.shape[1:]), fill, dtype=values.dtype)
    for b in range(rows):
        row = values[offsets[b] : offsets[b + 1]]
        kept = min(len(row), width)
        for slot in range(kept):
            padded[b, slot] = row[len(row) - kept + slot]
    return padded


def to_jagged(padded: Array, offsets: Array, fill: float = 0) -> Array:
    """(T,) or (T, D) of the dtype of ``padded`` (B, L) or (B, L, D): the inverse; older events get the fill."""
    width = padded.shape[1]
    values = np.full((int(offsets[-1]), *padded.shape[2:]), fill, dtype=padded.dtype)
    for b in range(len(offsets) - 1):
        length = int(offsets[b + 1] - offsets[b])
        kept = min(length, width)
        for slot in range(kept):
            values[offsets[b] + length - kept + slot] = padded[b, slot]
    return values
