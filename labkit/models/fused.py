"""Attention and GRU, which a GPU runs as one op each, on ``meta`` too: there torch would take them apart.

``scaled_dot_product_attention`` on ``meta`` becomes matrix products and a softmax over all scores in memory, and
``nn.GRU`` some forty small ops a step. A GPU runs neither: it has fused attention and cuDNN's recurrent kernels. So
that a trace on ``meta`` sees what a GPU does, each becomes one op there, forward and backward: ``labkit::attention``
and ``labkit::gru``. They exist on ``meta`` alone, have the shapes of what is read, written and kept, and flop formulas
in torch's own registry (matrix products only, of all scores, the masked ones too, as torch counts its own attention).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import PackedSequence
from torch.utils.flop_counter import register_flop_formula

from labkit.errors import ShapeError

#: Floats that a GRU in training keeps of each event and hidden unit for its backward; in ``eval`` it keeps none. cuDNN
#: does not publish its own number; this is that of ATen's fused cell: GRU_WORKSPACE_MULTIPLIER in
#: aten/src/ATen/native/cuda/RNN.cu. So the peak of a step is no exact one: against the CPU, which takes the network
#: apart and copies rectangles, GRU4Rec is modelled at 0.94 to 1.23 times its traced peak in training, and in inference
#: at 0.69 (padded) and 0.99 times (packed).
KEPT = 5


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Fused attention.

    Args:
        query: (R, heads, L, d).
        key: (R, heads, M, d).
        value: (R, heads, M, d).
        mask: bool, broadcasts to (R, heads, L, M), True = attend; None: causal (M = L), with no mask in memory.

    Returns:
        (R, heads, L, d).

    Cost: 4 * R * heads * L * M * d operations, twice and a half that in the backward. Torch's kernels take no bool: a
        mask is made one of floats first, as large as itself in elements, and kept for the backward. (CUDA copies it
        once more where M is no multiple of 8, ``pad_bias`` in ATen's attention.cpp, up to 7 floats a query longer:
        that is not on ``meta``.)
    """
    if query.is_meta:
        bias = mask if mask is None or mask.dtype is not torch.bool else _as_bias(mask, query.dtype)
        result: Tensor = torch.ops.labkit.attention(query, key, value, bias)[0]
        return result
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)


def gru(network: nn.GRU, data: Tensor | PackedSequence) -> tuple[Tensor, Tensor]:
    """Run a GRU.

    Args:
        network: with ``batch_first``, biases and one direction.
        data: (R, L, D), or a packed sequence of T events of n rows, with sorted indices.

    Returns:
        Outputs (R, L, H), or (T, H) as they lie in the packed sequence; and the last states (R, H) or (n, H), which of
        a rectangle are those of the last slots, padding or not.

    Cost: 6 * H * (D + H) operations an event (of a rectangle: a slot) and layer, twice that in the backward; one step
        after the other: L steps, or as many as the longest row has events.
    """
    inside = data.data if isinstance(data, PackedSequence) else data
    if inside.is_meta:
        return _gru_on_meta(network, data)
    output, state = network(data)
    return (output.data if isinstance(data, PackedSequence) else output), state[-1]


def _as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a query attends, -inf elsewhere: the ops of ``convert_boolean_attn_mask`` in ATen's attention.cpp."""
    nothing, never = (torch.scalar_tensor(x, dtype=dtype, device=mask.device) for x in (0.0, -torch.inf))
    return torch.where(mask, nothing, never)


def _gru_on_meta(network: nn.GRU, data: Tensor | PackedSequence) -> tuple[Tensor, Tensor]:
    if isinstance(data, PackedSequence):
        if data.sorted_indices is None:
            raise ShapeError("a packed sequence without sorted_indices: use PackedSequenceBatch.packed.")
        rows, steps, flat = data.sorted_indices.shape[0], data.batch_sizes.shape[0], data.data
    else:
        (rows, steps), flat = data.shape[:2], data.flatten(0, 1)
    state = flat
    for weights in network.all_weights:
        flat, state, _ = torch.ops.labkit.gru(flat, *weights, rows, steps, network.training)
    return (flat if isinstance(data, PackedSequence) else flat.view(rows, steps, -1)), state


# -- the ops on meta ------------------------------------------------------------------------------------------------

torch.library.define("labkit::attention", "(Tensor q, Tensor k, Tensor v, Tensor? mask) -> (Tensor, Tensor)")
torch.library.define(
    "labkit::attention_backward",
    "(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor out, Tensor lse) -> (Tensor, Tensor, Tensor)",
)
torch.library.define(
    "labkit::gru",
    "(Tensor data, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, int rows, int steps, bool train)"
    " -> (Tensor, Tensor, Tensor)",
)
torch.library.define(
    "labkit::gru_backward",
    "(Tensor grad, Tensor grad_last, Tensor data, Tensor w_ih, Tensor w_hh, Tensor out, Tensor kept, int steps)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The result and, in float32, the log-sum-exp of each row, from which the backward makes the softmax anew."""
    # torch's kernels leave the heads of an event side by side, so that what follows needs no copy
    out = torch.empty_like(q.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    return out, q.new_empty(q.shape[:-1], dtype=torch.float32)


def _attention_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, out: Tensor, lse: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _gru(
    data: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, rows: int, steps: int, train: bool
) -> tuple[Tensor, Tensor, Tensor]:
    events, hidden = data.shape[0], w_hh.shape[1]
    kept = data.new_empty(events if train else 0, KEPT * hidden)
    return data.new_empty(events, hidden), data.new_empty(rows, hidden), kept


def _gru_backward(
    grad: Tensor, grad_last: Tensor, data: Tensor, w_ih: Tensor, w_hh: Tensor, out: Tensor, kept: Tensor, steps: int
) -> tuple[Tensor, ...]:
    biases = (w_ih.new_empty(w_ih.shape[0]), w_hh.new_empty(w_hh.shape[0]))
    return torch.empty_like(data), torch.empty_like(w_ih), torch.empty_like(w_hh), *biases


def _keep_attention(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _grads_of_attention(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *torch.ops.labkit.attention_backward(grad, *ctx.saved_tensors), None


def _keep_gru(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    data, w_ih, w_hh, _, _, _, ctx.steps, _ = inputs
    out, _, kept = output
    ctx.save_for_backward(data, w_ih, w_hh, out, kept)


def _grads_of_gru(ctx: Any, grad: Tensor, grad_last: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *torch.ops.labkit.gru_backward(grad, grad_last, *ctx.saved_tensors, ctx.steps), None, None, None


for _op in (_attention, _attention_backward, _gru, _gru_backward):
    torch.library.register_fake(f"labkit::{_op.__name__.lstrip('_')}", _op)
torch.library.register_autograd("labkit::attention", _grads_of_attention, setup_context=_keep_attention)
torch.library.register_autograd("labkit::gru", _grads_of_gru, setup_context=_keep_gru)


@register_flop_formula(torch.ops.labkit.attention)
def _attention_flops(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], *_: Any, **__: Any) -> int:
    rows, heads, length, width = q
    return 2 * rows * heads * length * k[2] * (width + v[3])


@register_flop_formula(torch.ops.labkit.attention_backward)
def _attention_backward_flops(
    _: Any, q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], *__: Any, **___: Any
) -> int:
    """Five products where the forward has two: the scores anew; gradients of values, weights, queries and keys."""
    rows, heads, length, width = q
    return 2 * rows * heads * length * k[2] * (3 * width + 2 * v[3])


@register_flop_formula(torch.ops.labkit.gru)
def _gru_flops(data: tuple[int, ...], w_ih: tuple[int, ...], w_hh: tuple[int, ...], *_: Any, **__: Any) -> int:
    return 2 * data[0] * w_ih[0] * (w_ih[1] + w_hh[1])


@register_flop_formula(torch.ops.labkit.gru_backward)
def _gru_backward_flops(
    _: Any, __: Any, data: tuple[int, ...], w_ih: tuple[int, ...], w_hh: tuple[int, ...], *___: Any, **____: Any
) -> int:
    """Gradients of what came in and of the weights: two products where the forward has one."""
    return 4 * data[0] * w_ih[0] * (w_ih[1] + w_hh[1])
