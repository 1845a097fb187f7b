"""NumPy twin of embedding_pool: obvious loops, float64. An id outside the table makes its row NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def embedding_pool(table: Array, ids: Array, offsets: Array, weights: Array | None = None, *, mean: bool) -> Array:
    """(B, D) float64: sum, or mean, over the events of each row, of ``weights[t] * table[ids[t]]``."""
    out = np.zeros((len(offsets) - 1, table.shape[1]))
    for b in range(len(out)):
        for t in range(offsets[b], offsets[b + 1]):
            known = 0 <= ids[t] < len(table)
            entry = table[ids[t]].astype(np.float64) if known else np.full(table.shape[1], np.nan)
            out[b] += entry if weights is None else float(weights[t]) * entry
        if mean and offsets[b + 1] > offsets[b]:
            out[b] /= offsets[b + 1] - offsets[b]
    return out


def embedding_pool_backward(
    grad_out: Array, table: Array, ids: Array, offsets: Array, weights: Array | None = None, *, mean: bool
) -> tuple[Array, Array]:
    """Gradients of table (V, D) and weights (T,), float64; ids outside of the table get NaN, give nothing."""
    grad_table, grad_weights = np.zeros(table.shape), np.zeros(len(ids))
    for b in range(len(offsets) - 1):
        for t in range(offsets[b], offsets[b + 1]):
            grad = grad_out[b].astype(np.float64) / (offsets[b + 1] - offsets[b] if mean else 1)
            if not 0 <= ids[t] < len(table):
                grad_weights[t] = np.nan
                continue
            grad_table[ids[t]] += grad if weights is None else float(weights[t]) * grad
            grad_weights[t] = grad @ table[ids[t]].astype(np.float64)
    return grad_table, grad_weights
