"""``labkit::segment_sum`` and ``labkit::segment_max``: the events of each row pooled, with their backward ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch import launch
from labkit.gpu.ops.checks import check_bins, check_matrix, check_of_rows, check_offsets, row_ids
from labkit.gpu.ops.plan import Plan

_OP = "segment_pool"


@torch.library.custom_op("labkit::segment_sum", mutates_args=(), device_types="cpu")
def segment_sum(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], mean: bool) -> Tensor:
    """Sum, or mean, over the events of each row.

    Args:
        values: (T, D) float32, float16, bfloat16; on the CPU float64 too.
        offsets: (B+1,) int64.
        bins: of ``bin_rows`` with the same offsets and thresholds.
        thresholds: ``LaunchConfig.thresholds``.
        mean: divide by the number of events.

    Returns:
        (B, D), exactly 0 for empty rows; summed in float32 at least.

    Raises:
        ShapeError: shapes that do not fit together.
        KernelArgumentError: a dtype, device or stride that a kernel would misread.

    Cost: reads T*D elements, writes B*D; no host synchronization.
    """
    rows = _check(values, offsets, bins, thresholds)
    wide = values.float() if values.itemsize < 4 else values
    total = wide.new_zeros((rows, values.shape[1])).index_add_(0, row_ids(offsets, values.shape[0]), wide)
    return (total / offsets.diff().clamp(min=1)[:, None] if mean else total).to(values.dtype)


@segment_sum.register_kernel("cuda")
def segment_sum_cuda(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], mean: bool) -> Tensor:
    """``segment_sum`` by its kernels."""
    rows = _check(values, offsets, bins, thresholds)
    out = values.new_empty((rows, values.shape[1]))
    plan = Plan.of(bins, rows, values.shape[0], thresholds, values, out)
    partial, device = plan.partial(plan.features, values), values.device
    launch(
        _OP,
        f"segment_sum<{plan.template}>",
        plan.blocks(tiled=True),
        (out, partial, values, offsets, bins, *plan.sizes, np.int32(mean)),
        device,
    )
    launch(
        _OP,
        f"segment_sum_combine<{plan.template}>",
        plan.combine_blocks,
        (out, partial, offsets, bins, *plan.combine_sizes, np.int32(mean)),
        device,
    )
    return out


@segment_sum.register_fake
def _(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], mean: bool) -> Tensor:
    return values.new_empty((offsets.shape[0] - 1, values.shape[1]))


@torch.library.custom_op("labkit::segment_sum_backward", mutates_args=(), device_types="cpu")
def segment_sum_backward(
    grad: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], events: int, mean: bool
) -> Tensor:
    """Gradient of the values: that of each row, (B, D), at all its events, (T, D). Its own gradient is a sum again."""
    _check_grad(grad, offsets, bins, thresholds)
    wide = grad.float() if grad.itemsize < 4 else grad
    each = wide / offsets.diff().clamp(min=1)[:, None] if mean else grad
    return each.to(grad.dtype)[row_ids(offsets, events)]


@segment_sum_backward.register_kernel("cuda")
def segment_sum_backward_cuda(
    grad: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], events: int, mean: bool
) -> Tensor:
    """``segment_sum_backward`` by its kernels."""
    rows = _check_grad(grad, offsets, bins, thresholds)
    out = grad.new_empty((events, grad.shape[1]))
    plan = Plan.of(bins, rows, events, thresholds, grad, out)
    launch(
        _OP,
        f"segment_sum_backward<{plan.template}>",
        plan.blocks(tiled=True),
        (out, grad, offsets, bins, *plan.sizes, np.int32(mean)),
        grad.device,
    )
    return out


@segment_sum_backward.register_fake
def _(grad: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], events: int, mean: bool) -> Tensor:
    return grad.new_empty((events, grad.shape[1]))


@torch.library.custom_op("labkit::segment_max", mutates_args=(), device_types="cpu")
def segment_max(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Maximum over the events of each row, and where it is; arguments as in ``segment_sum``.

    Returns:
        (B, D) greatest values, 0 for empty rows, NaN where there is one; (B, D) int32, the place in its row of the
        first greatest event, -1 for empty rows.

    Cost: reads T*D elements, writes B*D and as many int32; no host synchronization.
    """
    rows = _check(values, offsets, bins, thresholds)
    ids = row_ids(offsets, values.shape[0])
    index = ids[:, None].expand_as(values)
    empty = (offsets.diff() == 0)[:, None]
    top = values.new_full((rows, values.shape[1]), -torch.inf).scatter_reduce_(0, index, values, "amax")
    reached = (values == top[ids]) | values.isnan()
    places = (torch.arange(values.shape[0], device=values.device) - offsets[ids])[:, None].expand_as(values)
    never = torch.iinfo(torch.int64).max
    at = torch.full_like(top, never, dtype=torch.int64)
    at.scatter_reduce_(0, index, places.masked_fill(~reached, never), "amin")
    return top.masked_fill_(empty, 0), at.masked_fill_(empty, -1).int()


@segment_max.register_kernel("cuda")
def segment_max_cuda(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> tuple[Tensor, Tensor]:
    """``segment_max`` by its kernels."""
    rows = _check(values, offsets, bins, thresholds)
    out = values.new_empty((rows, values.shape[1]))
    at = torch.empty_like(out, dtype=torch.int32)
    plan = Plan.of(bins, rows, values.shape[0], thresholds, values, out)
    partial, device = plan.partial(2 * plan.features, values), values.device
    launch(
        _OP,
        f"segment_max<{plan.template}>",
        plan.blocks(tiled=True),
        (out, at, partial, values, offsets, bins, *plan.sizes),
        device,
    )
    launch(
        _OP,
        f"segment_max_combine<{plan.template}>",
        plan.combine_blocks,
        (out, at, partial, offsets, bins, *plan.combine_sizes),
        device,
    )
    return out, at


@segment_max.register_fake
def _(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> tuple[Tensor, Tensor]:
    out = values.new_empty((offsets.shape[0] - 1, values.shape[1]))
    return out, torch.empty_like(out, dtype=torch.int32)


@torch.library.custom_op("labkit::segment_max_backward", mutates_args=(), device_types="cpu")
def segment_max_backward(
    grad: Tensor, at: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], events: int
) -> Tensor:
    """Gradient of the values: that of each row, (B, D), at its first greatest event, 0 at all others, (T, D)."""
    _check_maxima(grad, at, offsets, bins, thresholds)
    ids = row_ids(offsets, events)
    places = torch.arange(events, device=grad.device) - offsets[ids]
    return grad[ids].masked_fill_(places[:, None] != at[ids], 0)


@segment_max_backward.register_kernel("cuda")
def segment_max_backward_cuda(
    grad: Tensor, at: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], events: int
) -> Tensor:
    """``segment_max_backward`` by its kernels."""
    rows = _check_maxima(grad, at, offsets, bins, thresholds)
    out = grad.new_empty((events, grad.shape[1]))
    plan = Plan.of(bins, rows, events, thresholds, grad, out, places=at)
    launch(
        _OP,
        f"segment_max_backward<{plan.template}>",
        plan.blocks(tiled=True),
        (out, grad, at, offsets, bins, *plan.sizes),
        grad.device,
    )
    return out


@segment_max_backward.register_fake
def _(grad: Tensor, at: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int], events: int) -> Tensor:
    return grad.new_empty((events, grad.shape[1]))


def _check(values: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> int:
    rows = check_offsets(offsets, values, bins)
    check_matrix("values", values)
    check_bins(bins, rows, thresholds)
    return rows


def _check_grad(grad: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> int:
    rows = check_offsets(offsets, grad, bins)
    check_matrix("grad", grad, rows)
    check_bins(bins, rows, thresholds)
    return rows


def _check_maxima(grad: Tensor, at: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]) -> int:
    check_offsets(offsets, at)
    check_of_rows("at", at, grad.shape, torch.int32)
    return _check_grad(grad, offsets, bins, thresholds)


def _save_sum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, offsets, bins, ctx.thresholds, ctx.mean = inputs
    ctx.save_for_backward(offsets, bins)
    ctx.events = values.shape[0]


def _sum_grads(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = segment_sum_backward(grad.contiguous(), *ctx.saved_tensors, ctx.thresholds, ctx.events, ctx.mean)
    return found, None, None, None, None


def _save_spread(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, offsets, bins, ctx.thresholds, _, ctx.mean = inputs
    ctx.save_for_backward(offsets, bins)


def _spread_grads(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = segment_sum(grad.contiguous(), *ctx.saved_tensors, ctx.thresholds, ctx.mean)
    return found, None, None, None, None, None


def _save_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    values, offsets, bins, ctx.thresholds = inputs
    ctx.save_for_backward(output[1], offsets, bins)
    ctx.events = values.shape[0]


def _max_grads(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    found = segment_max_backward(grad.contiguous(), *ctx.saved_tensors, ctx.thresholds, ctx.events)
    return found, None, None, None


segment_sum.register_autograd(_sum_grads, setup_context=_save_sum)
segment_sum_backward.register_autograd(_spread_grads, setup_context=_save_spread)
segment_max.register_autograd(_max_grads, setup_context=_save_max)
