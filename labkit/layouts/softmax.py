"""Softmax over the allowed keys of each row. A row without any gives exactly 0, with finite gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.layouts.segments import segment_max, segment_sum


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the last dimension, where ``allowed`` is True; 0 elsewhere, and in rows where it never is.

    Neither -inf alone (NaN in such rows) nor a large negative number (the mean of everything) does that.

    Args:
        scores: (..., L); what is not allowed may hold anything, NaN included.
        allowed: bool, broadcasts to ``scores``; True = real event.

    Returns:
        (..., L), dtype of ``scores``, each row with an allowed key adding up to 1; half precision is summed in float32.

    Cost: five elementwise passes and two reductions; no host synchronization.
    """
    dtype = scores.dtype
    scores = _at_least_float32(scores).masked_fill(~allowed, -torch.inf)
    top = scores.detach().amax(dim=-1, keepdim=True)
    # exp(-inf - 0) = 0 in a row without keys. In any other the largest key adds exp(0) = 1, so that the clamp is exact.
    weights = torch.exp(scores - top.masked_fill(top == -torch.inf, 0))
    return (weights / weights.sum(dim=-1, keepdim=True).clamp(min=1)).to(dtype)


def segment_softmax(scores: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Softmax over the events of each row of a jagged array.

        scores a b c | | d    ids 0 0 0 2    ->    softmax(a b c), softmax(d) = 1

    Args:
        scores: (T,).
        ids: (T,) int64, the row of each event.
        rows: R.

    Returns:
        (T,), dtype of ``scores``, each row with events adding up to 1; half precision is summed in float32.

    Cost: two scatters, two gathers; no host synchronization.
    """
    dtype, scores = scores.dtype, _at_least_float32(scores)
    top = segment_max(scores.detach(), ids, rows)
    weights = torch.exp(scores - top[ids])
    return (weights / segment_sum(weights, ids, rows).clamp(min=1)[ids]).to(dtype)


def _at_least_float32(scores: Tensor) -> Tensor:
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
