"""Torch's nested tensors (``layout=torch.jagged``) of a jagged batch and back: the same memory, another face.

What they can do, tried in torch 2.13 on CPU and ``meta`` (the code is that of 2.11); the tests repeat it:

| | CPU | meta |
|---|---|---|
| linear, layer_norm, elementwise; forward and backward | yes | yes |
| ``scaled_dot_product_attention``, all keys | yes, with a host synchronization a row; not if all are empty | no |
| ``scaled_dot_product_attention``, ``is_causal`` | **no**: "No viable backend" | no |
| sum over a row, backward | no: ``_nested_sum_backward`` is missing | no |
| ``softmax`` over a row, ``to_padded_tensor`` | yes, the softmax not if all rows are empty | no |
| ``MultiheadAttention`` in training | no | no |

On CUDA the causal attention has kernels, but torch refuses them for a batch with an empty row (``_get_min_seqlen() ==
0``), and finds its shortest row by asking the device, unless told. So no model of the lab is built on nested tensors;
they are peers to compare with, and what code that already uses them takes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labkit.errors import ShapeError
from labkit.layouts.jagged_batch import JaggedBatch, longest_row


def as_nested(values: Tensor, batch: JaggedBatch, *, shortest: int | None = None) -> Tensor:
    """A nested tensor of values that lie as those of a jagged batch.

        values a b c d e    offsets 0 2 2 5    ->    [a b], [], [c d e]

    Args:
        values: (T, ...), of the batch or computed from it.
        batch: says where rows end, and the longest.
        shortest: events of the shortest row, where the host knows; None: torch asks the device when an op needs it.

    Returns:
        (R, ragged, ...) sharing the memory of ``values``, differentiable.

    Raises:
        ShapeError: not one entry an event; a longest row that nobody counted, on a device.

    Cost: nothing is copied; no host synchronization.
    """
    if batch.offsets.device.type == "cpu" and values.shape[0] != batch.offsets[-1]:
        raise ShapeError(
            f"values must have one entry an event: expected ({int(batch.offsets[-1])}, ...), "
            f"got {tuple(values.shape)}. Give what was computed from values of this batch."
        )
    nested: Tensor = torch.nested.nested_tensor_from_jagged(
        values, batch.offsets, min_seqlen=shortest, max_seqlen=longest_row(batch)
    )
    return nested


def from_nested(nested: Tensor, *, rows: int | None = None, longest: int | None = None) -> JaggedBatch:
    """The jagged batch of a nested tensor.

    Args:
        nested: (R, ragged, ...) of ``layout=torch.jagged``, without holes.
        rows: real rows, the others are ghost rows; None: all.
        longest: events of the longest row, where the host knows.

    Returns:
        Values (T, ...) that share the memory of ``nested``, differentiable, and its offsets.

    Raises:
        ShapeError: not such a tensor.

    Cost: nothing is copied; no host synchronization.
    """
    if not nested.is_nested or nested.layout is not torch.jagged:
        raise ShapeError(f"expected a nested tensor of layout torch.jagged: got {nested.layout}. Use as_nested.")
    own: Any = nested  # torch has no types for what a nested tensor has besides
    if own.lengths() is not None or not own.is_contiguous():
        raise ShapeError("a nested tensor with holes, or transposed, is no jagged batch: call contiguous() on it.")
    offsets = own.offsets()
    return JaggedBatch(own.values(), offsets, offsets.shape[0] - 1 if rows is None else rows, longest)
