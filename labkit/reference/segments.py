"""NumPy twins of bin_rows and segment_pool: obvious loops, float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def bin_rows(offsets: Array, giants: int, short_max: int, medium_max: int, long_max: int) -> Array:
    """(4 + giants + 1 + B,) int32, as ``kernels/rows.cuh`` says; entries of giants that are not there are 0."""
    lengths = [int(length) for length in np.diff(offsets)]
    classes: list[list[int]] = [[] for _ in range(16)]
    for row, length in enumerate(lengths):
        if length > long_max and giants:
            classes[0].append(row)
        elif length > medium_max:
            classes[1].append(row)
        elif length > short_max:
            classes[2].append(row)
        else:
            classes[15 - min(length.bit_length(), 12)].append(row)
    bins = np.zeros(4 + giants + 1 + len(lengths), dtype=np.int32)
    bins[0] = len(classes[0])
    bins[1] = bins[0] + len(classes[1])
    bins[2] = bins[1] + len(classes[2])
    for i, row in enumerate(classes[0]):
        bins[4 + i + 1] = bins[4 + i] + -(-lengths[row] // long_max)
    bins[3] = bins[4 + len(classes[0])]
    bins[4 + giants + 1 :] = [row for own in classes for row in own]
    return bins


def segment_sum(values: Array, offsets: Array, *, mean: bool = False) -> Array:
    """(B, D) float64: sum or mean over the events of each row of (T, D); 0 for empty rows."""
    out = np.zeros((len(offsets) - 1, values.shape[1]))
    for b in range(len(out)):
        for t in range(offsets[b], offsets[b + 1]):
            out[b] += values[t].astype(np.float64)
        if mean and offsets[b + 1] > offsets[b]:
            out[b] /= offsets[b + 1] - offsets[b]
    return out


def segment_sum_backward(grad_out: Array, offsets: Array, *, mean: bool = False) -> Array:
    """(T, D) float64: gradient of the values."""
    grad = np.zeros((int(offsets[-1]), grad_out.shape[1]))
    for b in range(len(offsets) - 1):
        for t in range(offsets[b], offsets[b + 1]):
            grad[t] = grad_out[b].astype(np.float64) / (offsets[b + 1] - offsets[b] if mean else 1)
    return grad


def segment_max(values: Array, offsets: Array) -> tuple[Array, Array]:
    """(B, D) float64 greatest values (0 for empty rows, NaN wins); (B, D) int32 place of the first one, or -1."""
    out = np.zeros((len(offsets) - 1, values.shape[1]))
    at = np.full(out.shape, -1, dtype=np.int32)
    for b in range(len(out)):
        row = values[offsets[b] : offsets[b + 1]].astype(np.float64)
        if len(row):
            at[b] = np.argmax(row, axis=0)  # NumPy's too is the first, and a NaN is greater than all
            out[b] = np.max(row, axis=0)
    return out, at


def segment_max_backward(grad_out: Array, at: Array, offsets: Array) -> Array:
    """(T, D) float64: the gradient goes to the first greatest event alone."""
    grad = np.zeros((int(offsets[-1]), grad_out.shape[1]))
    for b in range(len(offsets) - 1):
        for d in range(grad_out.shape[1]):
            if at[b, d] >= 0:
                grad[offsets[b] + at[b, d], d] = grad_out[b, d]
    return grad
