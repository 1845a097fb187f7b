"""``labkit::embedding_pool``: rows of a table gathered and pooled in one pass; its gradients are ops of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.errors import ShapeError
from labkit.gpu.launch import launch
from labkit.gpu.ops.autocast import promotes_in_autocast
from labkit.gpu.ops.bin_rows import bin_rows_cuda
from labkit.gpu.ops.checks import check_bins, check_matrix, check_of_rows, check_offsets, check_per_event, row_ids
from labkit.gpu.ops.plan import Plan

_OP = "embedding_pool"


@torch.library.custom_op("labkit::embedding_pool", mutates_args=(), device_types="cpu")
def embedding_pool(
    table: Tensor,
    ids: Tensor,
    weights: Tensor | None,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    """Sum, or mean, over the events of each row, of ``weights[t] * table[ids[t]]``.

        table 0 1 | 2 3 | 4 5    ids 0 2 | | 1    sum -> 4 6 | 0 0 | 2 3

    Args:
        table: (V, D) float32, float16, bfloat16; on the CPU float64 too.
        ids: (T,) int64; one outside of the table makes its row NaN, and is not read.
        weights: (T,) as the table; None: 1.
        offsets: (B+1,) int64.
        bins: of ``bin_rows`` with the same offsets and thresholds.
        thresholds: ``LaunchConfig.thresholds``.
        mean: divide by the number of events.

    Returns:
        (B, D), exactly 0 for empty rows; summed in float32 at least.

    Raises:
        ShapeError: shapes that do not fit together, or events and an empty table.
        KernelArgumentError: a dtype, device or stride that a kernel would misread.

    Cost: reads T*D elements and T ids, writes B*D; there is no (T, D) in between; no host synchronization.
    """
    rows = _check(table, ids, weights, offsets, bins, thresholds)
    wide = table.float() if table.itemsize < 4 else table
    entries = _entries(wide, ids)
    if weights is not None:
        entries = entries * weights[:, None].to(wide.dtype)
    total = wide.new_zeros((rows, table.shape[1])).index_add_(0, row_ids(offsets, ids.shape[0]), entries)
    return (total / offsets.diff().clamp(min=1)[:, None] if mean else total).to(table.dtype)


@embedding_pool.register_kernel("cuda")
def embedding_pool_cuda(
    table: Tensor,
    ids: Tensor,
    weights: Tensor | None,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    """``embedding_pool`` by its kernels."""
    rows = _check(table, ids, weights, offsets, bins, thresholds)
    out = table.new_empty((rows, table.shape[1]))
    plan = Plan.of(bins, rows, ids.shape[0], thresholds, table, out)
    partial, device, weighted = plan.partial(plan.features, table), table.device, str(weights is not None).lower()
    launch(
        _OP,
        f"embedding_pool<{plan.template}, {weighted}>",
        plan.blocks(tiled=True),
        (out, partial, table, ids, weights, offsets, bins, np.int64(table.shape[0]), *plan.sizes, np.int32(mean)),
        device,
    )
    launch(
        _OP,
        f"embedding_pool_combine<{plan.template}>",
        plan.combine_blocks,
        (out, partial, offsets, bins, *plan.combine_sizes, np.int32(mean)),
        device,
    )
    return out


@embedding_pool.register_fake
def _(
    table: Tensor,
    ids: Tensor,
    weights: Tensor | None,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    return table.new_empty((offsets.shape[0] - 1, table.shape[1]))


@torch.library.custom_op("labkit::embedding_pool_table_grad", mutates_args=(), device_types="cpu")
def embedding_pool_table_grad(
    grad: Tensor,
    items: int,
    ids: Tensor,
    weights: Tensor | None,
    offsets: Tensor,
    giants: int,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    """Gradient of the table, (V, D), of the gradient (B, D) of the rows.

    On CUDA it is an ``embedding_pool`` of ``grad`` over the transposed rows: for each item those rows of the batch in
    which it is. No atomics, so the same bits every time, and no pass that writes zeros first.

    Cost: on CUDA a stable sort of the ids, then reads T*D elements and writes V*D; no host synchronization. The mean of
        16-bit rows goes through float32, with (B, D) and (V, D) float32 in between.
    """
    _check_transposed(grad, ids, weights, offsets)
    known = (ids >= 0) & (ids < items)
    wide = grad.float() if grad.itemsize < 4 else grad
    each = _row_grad(wide, offsets, mean)[row_ids(offsets, ids.shape[0])]
    if weights is not None:
        each = each * weights[:, None].to(each.dtype)
    each = each.masked_fill(~known[:, None], 0)
    spread = wide.new_zeros((items + 1, grad.shape[1])).index_add_(0, ids.masked_fill(~known, items), each)
    return spread[:items].to(grad.dtype)


@embedding_pool_table_grad.register_kernel("cuda")
def embedding_pool_table_grad_cuda(
    grad: Tensor,
    items: int,
    ids: Tensor,
    weights: Tensor | None,
    offsets: Tensor,
    giants: int,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    """``embedding_pool_table_grad`` by its kernels."""
    _check_transposed(grad, ids, weights, offsets)
    if not items or not grad.shape[0]:
        return grad.new_zeros((items, grad.shape[1]))
    in_order, order = ids.sort(stable=True)
    starts = torch.searchsorted(in_order, torch.arange(items + 1, device=ids.device))
    rows = row_ids(offsets, ids.shape[0])[order]
    each = _row_grad(grad, offsets, mean)
    own = None if weights is None else weights[order].to(each.dtype)
    bins = bin_rows_cuda(starts, giants, thresholds)
    found: Tensor = embedding_pool_cuda(each, rows, own, starts, bins, thresholds, False)
    return found.to(grad.dtype)


@embedding_pool_table_grad.register_fake
def _(
    grad: Tensor,
    items: int,
    ids: Tensor,
    weights: Tensor | None,
    offsets: Tensor,
    giants: int,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    return grad.new_empty((items, grad.shape[1]))


@torch.library.custom_op("labkit::embedding_pool_weight_grad", mutates_args=(), device_types="cpu")
def embedding_pool_weight_grad(
    grad: Tensor,
    table: Tensor,
    ids: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    """Gradient of the weights, (T,): of each event the inner product of its row's gradient and its entry."""
    _check_weight_grad(grad, table, ids, offsets, bins, thresholds)
    wide = table.float() if table.itemsize < 4 else table
    each = _row_grad(grad.to(wide.dtype), offsets, mean)[row_ids(offsets, ids.shape[0])]
    return (each * _entries(wide, ids)).sum(1).to(table.dtype)


@embedding_pool_weight_grad.register_kernel("cuda")
def embedding_pool_weight_grad_cuda(
    grad: Tensor,
    table: Tensor,
    ids: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    """``embedding_pool_weight_grad`` by its kernels."""
    rows = _check_weight_grad(grad, table, ids, offsets, bins, thresholds)
    out = table.new_empty(ids.shape[0])
    plan = Plan.of(bins, rows, ids.shape[0], thresholds, table, grad)
    launch(
        _OP,
        f"embedding_pool_weight_grad<{plan.template}>",
        plan.blocks(tiled=False),
        (out, grad, table, ids, offsets, bins, np.int64(table.shape[0]), *plan.sizes, np.int32(mean)),
        table.device,
    )
    return out


@embedding_pool_weight_grad.register_fake
def _(
    grad: Tensor,
    table: Tensor,
    ids: Tensor,
    offsets: Tensor,
    bins: Tensor,
    thresholds: Sequence[int],
    mean: bool,
) -> Tensor:
    return table.new_empty(ids.shape[0])


def _check(
    table: Tensor, ids: Tensor, weights: Tensor | None, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]
) -> int:
    check_matrix("table", table)
    check_per_event("ids", ids, ids.shape[0], torch.int64)
    if weights is not None:
        check_per_event("weights", weights, ids.shape[0], table.dtype)
    rows = check_offsets(offsets, table, ids, bins, *(() if weights is None else (weights,)))
    check_bins(bins, rows, thresholds)
    if ids.shape[0] and not table.shape[0]:
        raise ShapeError(f"a table without rows has no entry for {ids.shape[0]} ids: give a table of V >= 1 rows.")
    return rows


def _check_transposed(grad: Tensor, ids: Tensor, weights: Tensor | None, offsets: Tensor) -> None:
    check_per_event("ids", ids, ids.shape[0], torch.int64)
    if weights is not None:
        check_per_event("weights", weights, ids.shape[0], grad.dtype)
    check_matrix("grad", grad, check_offsets(offsets, grad, ids, *(() if weights is None else (weights,))))


def _check_weight_grad(
    grad: Tensor, table: Tensor, ids: Tensor, offsets: Tensor, bins: Tensor, thresholds: Sequence[int]
) -> int:
    rows = _check(table, ids, None, offsets, bins, thresholds)
    check_offsets(offsets, grad)
    check_of_rows("grad", grad, (rows, table.shape[1]), table.dtype)
    return rows


def _entries(table: Tensor, ids: Tensor) -> Tensor:
    """(T, D) entries, NaN for ids outside of the table."""
    known = (ids >= 0) & (ids < table.shape[0])
    return table[ids.masked_fill(~known, 0)].masked_fill(~known[:, None], torch.nan)


def _row_grad(grad: Tensor, offsets: Tensor, mean: bool) -> Tensor:
    """(B, D) gradient of each event of a row; divided in float32 at least, which no length overflows."""
    if not mean:
        return grad
    wide = grad.float() if grad.itemsize < 4 else grad
    return wide / offsets.diff().clamp(min=1)[:, None]


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    table, ids, weights, offsets, bins, ctx.thresholds, ctx.mean = inputs
    ctx.save_for_backward(table, ids, weights, offsets, bins)


def _grads(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    table, ids, weights, offsets, bins = ctx.saved_tensors
    grad, of_table, of_weights = grad.contiguous(), None, None
    if ctx.needs_input_grad[0]:
        # an item may be in the batch any number of times, whatever is known of the rows' lengths
        giants = ids.shape[0] // (ctx.thresholds[2] + 1)
        of_table = embedding_pool_table_grad(
            grad, table.shape[0], ids, weights, offsets, giants, ctx.thresholds, ctx.mean
        )
    if weights is not None and ctx.needs_input_grad[2]:
        of_weights = embedding_pool_weight_grad(grad, table, ids, offsets, bins, ctx.thresholds, ctx.mean)
    return of_table, None, of_weights, None, None, None, None


embedding_pool.register_autograd(_grads, setup_context=_save)
promotes_in_autocast(embedding_pool)
