"""NumPy twin of din_attention: softmax of the scores of a row, and the weighted sum of its values, in float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Attended(NamedTuple):
    """Result of ``attention_pool``.

    Attributes:
        out: (B, D) float64; 0 for rows that are empty or wholly masked.
        top: (B,) float64, greatest score of the row; -inf where there is none.
        total: (B,) float64, sum of exp(score - top); 0 where there is none.
    """

    out: Array
    top: Array
    total: Array


def attention_pool(scores: Array, values: Array, offsets: Array) -> Attended:
    """Softmax of ``scores`` (T,) within each row, a score of -inf being a masked event, times ``values`` (T, D)."""
    rows = len(offsets) - 1
    out, top, total = np.zeros((rows, values.shape[1])), np.full(rows, -np.inf), np.zeros(rows)
    for b in range(rows):
        for t in range(offsets[b], offsets[b + 1]):
            top[b] = max(top[b], float(scores[t]))
        for t in range(offsets[b], offsets[b + 1]):
            if scores[t] != -np.inf:
                weight = np.exp(float(scores[t]) - top[b])
                total[b] += weight
                out[b] += weight * values[t].astype(np.float64)
        if total[b] != 0:
            out[b] /= total[b]
    return Attended(out, top, total)


def attention_pool_backward(grad_out: Array, scores: Array, values: Array, offsets: Array) -> tuple[Array, Array]:
    """Gradients of the scores (T,) and the values (T, D), float64; 0 at masked events."""
    out, top, total = attention_pool(scores, values, offsets)
    grad_scores, grad_values = np.zeros(len(scores)), np.zeros(values.shape)
    for b in range(len(offsets) - 1):
        grad = grad_out[b].astype(np.float64)
        for t in range(offsets[b], offsets[b + 1]):
            if scores[t] != -np.inf:
                weight = np.exp(float(scores[t]) - top[b]) / total[b]
                grad_values[t] = weight * grad
                grad_scores[t] = weight * (grad @ values[t].astype(np.float64) - grad @ out[b])
    return grad_scores, grad_values
