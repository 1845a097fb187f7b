"""The ways that torch has of doing what the ops do; FBGEMM's too where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labkit.gpu_check.ragged_data import RaggedData
from labkit.layouts.padded import valid_slots
from labkit.layouts.segments import row_ids, segment_sum
from labkit.layouts.softmax import masked_softmax, segment_softmax


def nested_of(values: Tensor, data: RaggedData) -> Tensor:
    """The rows as a nested tensor, its longest row known."""
    nested: Tensor = torch.nested.nested_tensor_from_jagged(values, data.offsets, max_seqlen=data.longest)
    return nested


def padded_of(values: Tensor, data: RaggedData, fill: float = 0.0) -> Tensor:
    """(B, L, ...) by a gather and a mask."""
    slots = torch.arange(data.longest, device=values.device)
    events = (data.offsets[:-1, None] + slots).clamp(max=values.shape[0] - 1)
    valid = slots < data.offsets.diff()[:, None]
    return values[events].masked_fill_(~valid.view(*valid.shape, *[1] * (values.ndim - 1)), fill)


class PaddedAttention(NamedTuple):
    """Scores and values in rectangles, made before the clock starts, as a padded batch would come.

    Attributes:
        scores: (B, L).
        values: (B, L, D).
        valid: (B, L) bool.
    """

    scores: Tensor
    values: Tensor
    valid: Tensor

    def forward(self, scores: Tensor, values: Tensor) -> Tensor:
        """(B, D) by a masked softmax and a product."""
        return torch.bmm(masked_softmax(scores, self.valid)[:, None], values)[:, 0]


def padded_attention(data: RaggedData) -> PaddedAttention:
    """The scores and values of a batch in rectangles."""
    valid = valid_slots(data.offsets.diff(), data.longest)
    return PaddedAttention(padded_of(data.scores, data), padded_of(data.values, data), valid)


def scattered_attention(scores: Tensor, values: Tensor, data: RaggedData) -> Tensor:
    """(B, D) by gathers and scatters over the events."""
    ids = row_ids(data.offsets, data.events)
    return segment_sum(segment_softmax(scores, ids, data.rows)[:, None] * values, ids, data.rows)


def backward_of(forward: Callable[..., Tensor], *inputs_and_grad: Tensor) -> Callable[[], object]:
    """The backward pass alone, again and again: the forward has been run once.

    Where torch cannot do the forward, the call that is returned raises its error.
    """
    *inputs, grad = inputs_and_grad
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    made: list[Tensor] = []

    def call() -> object:
        if not made:
            made.append(forward(*leaves))
        return torch.autograd.grad(made[0], leaves, grad, retain_graph=True)

    return call


def fbgemm_op(name: str, *arguments: Any) -> dict[str, Callable[[], object]]:
    """A call of ``torch.ops.fbgemm``; none where FBGEMM is not installed."""
    if find_spec("fbgemm_gpu") is None:
        return {}

    def call() -> object:
        import_module("fbgemm_gpu")
        return getattr(torch.ops.fbgemm, name)(*arguments)

    return {f"fbgemm.{name}": call}
