"""spmm: a CSR matrix times a dense one, as one op that also has a backward, a shape on meta and a count of flops."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from labkit.errors import ShapeError


@torch.library.custom_op("labkit::spmm", mutates_args=())
def spmm(weights: Tensor, row_offsets: Tensor, columns: Tensor, row_ids: Tensor, dense: Tensor) -> Tensor:
    """Multiply an (R, C) sparse matrix with a (C, D) dense one by torch's sparse library (MKL, cuSPARSE).

        weights 2 1 | | 3   columns 0 2 | | 1   row_offsets 0 2 2 3   ->   2 * dense[0] + dense[2], 0, 3 * dense[1]

    Args:
        weights: (E,) entries of the matrix, in the dtype of ``dense``.
        row_offsets: (R + 1,) int64.
        columns: (E,) int64, strictly increasing within a row.
        row_ids: (E,) int64, the row of each entry; for the backward.
        dense: (C, D).

    Returns:
        (R, D); rows without entries are 0.

    Raises:
        ShapeError: a column beyond C, on the CPU alone: there MKL would read whatever lies behind, without a word.

    Cost: reads E * (D + 1) elements and writes R * D; backward: two gathers of E * D and one index_add into (C, D).
        No host synchronization. torch's own backward of a CSR product transposes the matrix in every step.
    """
    rows = row_offsets.shape[0] - 1
    if not (weights.shape[0] and rows):
        return dense.new_zeros((rows, dense.shape[1]))
    columns_there = dense.shape[0]
    if dense.device.type == "cpu" and int(columns.max()) >= columns_there:
        raise ShapeError(
            f"columns must be below {columns_there}, the rows of the dense matrix: got {int(columns.max())}."
        )
    _accept_beta_state()
    matrix = torch.sparse_csr_tensor(row_offsets, columns, weights, (rows, columns_there), check_invariants=False)
    return matrix @ dense


@spmm.register_fake
def _shape(weights: Tensor, row_offsets: Tensor, columns: Tensor, row_ids: Tensor, dense: Tensor) -> Tensor:
    return dense.new_empty((row_offsets.shape[0] - 1, dense.shape[1]))


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    weights, _, columns, row_ids, dense = inputs
    ctx.save_for_backward(weights, columns, row_ids, dense)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None, Tensor | None]:
    weights, columns, row_ids, dense = ctx.saved_tensors
    of_entries = gradient[row_ids]
    for_weights = (of_entries * dense[columns]).sum(-1) if ctx.needs_input_grad[0] else None
    for_dense = None
    if ctx.needs_input_grad[4]:
        for_dense = torch.zeros_like(dense).index_add_(0, columns, weights[:, None] * of_entries)
    return for_weights, None, None, None, for_dense


spmm.register_autograd(_backward, setup_context=_keep)
for _device in ("cpu", "cuda"):  # the libraries take float32; half precision only on some devices
    spmm.register_autocast(_device, torch.float32)


@register_flop_formula(torch.ops.labkit.spmm)
def _flops(weights: tuple[int, ...], *others: tuple[int, ...], out_shape: tuple[int, ...], **_: Any) -> int:
    return 2 * weights[0] * out_shape[-1]


@cache
def _accept_beta_state() -> None:
    """Make the first CSR matrix of the process here: torch warns once that they are in beta state."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        none = torch.zeros(0)
        torch.sparse_csr_tensor(torch.zeros(2, dtype=torch.int64), none.long(), none, (1, 1), check_invariants=False)
