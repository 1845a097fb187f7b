"""``labkit::attention_pool``: softmax of the scores of each row, and the weighted sum of its values, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labkit.gpu.launch import launch
from labkit.gpu.ops.autocast import promotes_in_autocast
from labkit.gpu.ops.checks import check_bins, check_matrix, check_of_rows, check_offsets, check_per_event, row_ids
from labkit.gpu.ops.plan import Plan

_OP = "din_attention"


@torch.library.custom_op("labkit::attention_pool", mutates_args=(), device_types="cpu")
def attention_pool(
    scores: Tensor, values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Weight the values of each row by the softmax of its scores.

    Args:
        scores: (T,) as the values; -inf masks an event.
        values: (T, D) float32, float16, bfloat16; on the CPU float64 too.
        offsets: (B+1,) int64.
        bins: of ``bin_rows`` with the same offsets and thresholds.
        thresholds: ``LaunchConfig.thresholds``.

    Returns:
        (B, D) weighted sums, exactly 0 for rows that are empty or wholly masked; and, for the backward, (B,) greatest
        scores and (B,) sums of exp(score - greatest), float32 at least.

    Raises:
        ShapeError: shapes that do not fit together.
        KernelArgumentError: a dtype, device or stride that a kernel would misread.

    Cost: reads T*(D+1) elements, writes B*(D+2); no host synchronization.
    """
    rows = _check(scores, values, offsets, bins, thresholds)
    wide = values.dtype if values.itemsize >= 4 else torch.float32
    ids, scores, live = row_ids(offsets, values.shape[0]), scores.to(wide), (scores != -torch.inf)[:, None]
    top = scores.new_full((rows,), -torch.inf).scatter_reduce_(0, ids, scores, "amax")
    each = torch.exp(scores - top.masked_fill(top == -torch.inf, 0)[ids])
    total = top.new_zeros(rows).index_add_(0, ids, each)
    weighted = (each[:, None] * values.to(wide)).masked_fill(~live, 0)
    out = top.new_zeros((rows, values.shape[1])).index_add_(0, ids, weighted)
    return (out / total.masked_fill(total == 0, 1)[:, None]).to(values.dtype), top, total


@attention_pool.register_kernel("cuda")
def attention_pool_cuda(
    scores: Tensor, values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """``attention_pool`` by its kernels."""
    rows = _check(scores, values, offsets, bins, thresholds)
    out = values.new_empty((rows, values.shape[1]))
    top, total = (torch.empty(rows, dtype=torch.float32, device=values.device) for _ in range(2))
    plan = Plan.of(bins, rows, values.shape[0], thresholds, values, out)
    partial, device = plan.partial(plan.features + 2, values), values.device
    launch(
        _OP,
        f"attention_pool<{plan.template}>",
        plan.blocks(tiled=True),
        (out, top, total, partial, scores, values, offsets, bins, *plan.sizes),
        device,
    )
    launch(
        _OP,
        f"attention_pool_combine<{plan.template}>",
        plan.combine_blocks,
        (out, top, total, partial, offsets, bins, *plan.combine_sizes),
        device,
    )
    return out, top, total


@attention_pool.register_fake
def _(
    scores: Tensor, values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    rows, wide = offsets.shape[0] - 1, values.dtype if values.itemsize >= 4 else torch.float32
    top, total = (values.new_empty(rows, dtype=wide) for _ in range(2))
    return values.new_empty((rows, values.shape[1])), top, total


@torch.library.custom_op("labkit::attention_pool_backward", mutates_args=(), device_types="cpu")
def attention_pool_backward(
    grad: Tensor,
    out: Tensor,
    top: Tensor,
    total: Tensor,
    scores: Tensor,
    values: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores, (T,), and of the values, (T, D); 0 at masked events.

    Args:
        grad: (B, D) gradient of the result.
        out: (B, D) result of ``attention_pool``.
        top: (B,) greatest scores.
        total: (B,) sums.
        scores: (T,) as given to it, and so are the other arguments.

    Cost: reads T*(D+1) and B*(2*D+2) elements, writes T*(D+1); no host synchronization.
    """
    _check_backward(grad, (out, top, total), scores, values, offsets, bins, thresholds)
    ids, live = row_ids(offsets, values.shape[0]), scores != -torch.inf
    wide = top.dtype
    weights = (torch.exp(scores.to(wide) - top[ids]) / total[ids]).masked_fill(~live, 0)
    each = grad.to(wide)[ids]
    inner = (each * (values.to(wide) - out.to(wide)[ids])).sum(1)
    of_values = (weights[:, None] * each).masked_fill(~live[:, None], 0)
    return (weights * inner).masked_fill(~live, 0).to(scores.dtype), of_values.to(values.dtype)


@attention_pool_backward.register_kernel("cuda")
def attention_pool_backward_cuda(
    grad: Tensor,
    out: Tensor,
    top: Tensor,
    total: Tensor,
    scores: Tensor,
    values: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """``attention_pool_backward`` by its kernels."""
    rows = _check_backward(grad, (out, top, total), scores, values, offsets, bins, thresholds)
    of_scores, of_values = torch.empty_like(scores), torch.empty_like(values)
    plan = Plan.of(bins, rows, values.shape[0], thresholds, values, of_values, grad, out)
    launch(
        _OP,
        f"attention_pool_backward<{plan.template}>",
        plan.blocks(tiled=False),
        (of_scores, of_values, grad, out, top, total, scores, values, offsets, bins, *plan.sizes),
        values.device,
    )
    return of_scores, of_values


@attention_pool_backward.register_fake
def _(
    grad: Tensor,
    out: Tensor,
    top: Tensor,
    total: Tensor,
    scores: Tensor,
    values: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(scores), torch.empty_like(values)


def _check(scores: Tensor, values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> int:
    check_matrix("values", values)
    check_per_event("scores", scores, values.shape[0], values.dtype)
    rows = check_offsets(offsets, values, scores, bins)
    check_bins(bins, rows, thresholds)
    return rows


def _check_backward(
    grad: Tensor,
    attended: tuple[Tensor, Tensor, Tensor],
    scores: Tensor,
    values: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
) -> int:
    rows, (out, top, total) = _check(scores, values, offsets, bins, thresholds), attended
    check_offsets(offsets, grad, *attended)
    wide = values.dtype if values.itemsize >= 4 else torch.float32
    for name, given, dtype in (("grad", grad, values.dtype), ("out", out, values.dtype)):
        check_of_rows(name, given, (rows, values.shape[1]), dtype)
    for name, given in (("top", top), ("total", total)):
        check_of_rows(name, given, (rows,), wide)
    return rows


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, values, offsets, bins, ctx.thresholds = inputs
    ctx.save_for_backward(*output, scores, values, offsets, bins)
    ctx.mark_non_differentiable(*output[1:])


def _grads(ctx: Any, grad: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    of_scores, of_values = attention_pool_backward(grad.contiguous(), *ctx.saved_tensors, ctx.thresholds)
    return of_scores, of_values, None, None, None


attention_pool.register_autograd(_grads, setup_context=_save)
promotes_in_autocast(attention_pool)
