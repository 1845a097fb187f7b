"""Attention and GRU on meta: one op each, with the shapes, the flops and the gradients of what a GPU runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from labkit.errors import ShapeError
from labkit.layouts.packed_rnn import pack_jagged
from labkit.models.fused import KEPT, attention, gru


class Ops(TorchDispatchMode):
    """Ops of ours that ran, with the shapes of what they gave."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[int, ...]]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs or {})
        if func.namespace == "labkit":
            self.found.append((func.overloadpacket.__name__, [tuple(out.shape) for out in result]))
        return result


def heads(device: str) -> list[Tensor]:
    """Queries, keys and values as models make them: (R, heads, L, d), parts of one projection."""
    torch.manual_seed(0)
    projected = torch.randn(3, 5, 3, 2, 8, device=device, requires_grad=True)
    return list(projected.transpose(1, 3).unbind(2))


def test_attention_is_one_op_forward_and_one_backward() -> None:
    query, key, value = heads("meta")
    with Ops() as ops:
        attention(query, key, value, None).sum().backward()
    assert ops.found == [
        ("attention", [(3, 2, 5, 8), (3, 2, 5)]),
        ("attention_backward", [(3, 2, 5, 8)] * 3),
    ]


@pytest.mark.parametrize("masked", [True, False])
def test_attention_on_meta_has_the_shape_and_the_layout_of_the_real_one(masked: bool) -> None:
    mask = torch.ones(3, 1, 5, 5, dtype=torch.bool).tril() if masked else None
    real = attention(*heads("cpu"), mask)
    meta = attention(*heads("meta"), mask if mask is None else mask.to("meta"))
    assert (meta.shape, meta.stride(), meta.dtype) == (real.shape, real.stride(), real.dtype)


def test_a_bool_mask_becomes_one_of_floats_as_it_does_in_torch() -> None:
    class Made(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[tuple[str, tuple[int, ...], torch.dtype]] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **kwargs or {})
            if func.overloadpacket.__name__ in ("scalar_tensor", "where"):
                self.found.append((str(func), tuple(result.shape), result.dtype))
            return result

    made = []
    for device in ("cpu", "meta"):
        mask = torch.ones(3, 1, 5, 5, dtype=torch.bool, device=device)
        with Made() as ops:
            attention(*heads(device), mask)
        made.append(ops.found)
    assert made[0] == made[1]
    assert made[1][-1] == ("aten.where.self", (3, 1, 5, 5), torch.float32)


def test_attention_counts_the_operations_that_torch_counts() -> None:
    # 3 * 2 pairs of row and head, 5 * 5 scores of 8 products: 2 * 6 * 25 * 8 = 2400, and as many for the values
    with FlopCounterMode(display=False) as meta:
        attention(*heads("meta"), None).sum().backward()
    forward, backward = meta.get_flop_counts()["Global"].values()
    assert (forward, backward) == (4800, 12_000)
    aten = torch.ops.aten
    query, key, value = (part.detach().requires_grad_() for part in heads("meta"))
    with FlopCounterMode(display=False) as of_torch:
        aten._scaled_dot_product_efficient_attention(query, key, value, None, True, 0.0, True)[0].sum().backward()
    assert list(of_torch.get_flop_counts()["Global"].values()) == [forward, backward]


def test_a_masked_query_sees_what_the_mask_says() -> None:
    query, key, value = heads("cpu")
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(attention(query, key, value, causal), attention(query, key, value, None))


@pytest.mark.parametrize("layers", [1, 2])
def test_a_gru_is_one_op_a_layer_and_direction(layers: int) -> None:
    network = nn.GRU(4, 6, layers, batch_first=True, device="meta")
    with Ops() as ops:
        output, state = gru(network, torch.empty(3, 5, 4, device="meta", requires_grad=True))
        output.sum().backward()
    assert (output.shape, state.shape) == ((3, 5, 6), (3, 6))
    forward = ("gru", [(15, 6), (3, 6), (15, KEPT * 6)])
    assert ops.found[:layers] == [forward] * layers
    assert [name for name, _ in ops.found[layers:]] == ["gru_backward"] * layers
    assert ops.found[-1][1] == [(15, 4), (18, 4), (18, 6), (18,), (18,)]


def test_a_gru_keeps_nothing_where_it_does_not_train() -> None:
    network = nn.GRU(4, 6, batch_first=True, device="meta").eval()
    with Ops() as ops, torch.no_grad():
        gru(network, torch.empty(3, 5, 4, device="meta"))
    assert ops.found == [("gru", [(15, 6), (3, 6), (0, KEPT * 6)])]


@pytest.mark.parametrize("packed", [True, False])
def test_a_gru_on_meta_has_the_shapes_of_the_real_one(packed: bool) -> None:
    network = nn.GRU(4, 6, 2, batch_first=True)
    data = torch.randn(9, 4) if packed else torch.randn(3, 5, 4)
    lengths = torch.tensor([2, 0, 7])
    real = gru(network, pack_jagged(data, lengths).packed(data) if packed else data)
    data, network = data.to("meta"), network.to("meta")
    meta = gru(network, pack_jagged(data, lengths).packed(data) if packed else data)
    assert [part.shape for part in meta] == [part.shape for part in real]


def test_every_weight_of_a_gru_has_a_gradient_on_meta() -> None:
    network = nn.GRU(4, 6, 2, batch_first=True, device="meta")
    data = torch.empty(3, 5, 4, device="meta", requires_grad=True)
    output, state = gru(network, data)
    (output.sum() + state.sum()).backward()
    for weight in (data, *network.parameters()):
        assert weight.grad is not None
        assert weight.grad.shape == weight.shape


def test_operations_of_a_gru() -> None:
    # 15 slots, 3 * 6 gates, each 4 products with the input and 6 with the state: 2 * 15 * 18 * 10 = 5400; twice in
    # the backward
    network = nn.GRU(4, 6, batch_first=True, device="meta")
    with FlopCounterMode(display=False) as counter:
        gru(network, torch.empty(3, 5, 4, device="meta", requires_grad=True))[0].sum().backward()
    assert list(counter.get_flop_counts()["Global"].values()) == [5400, 10_800]
    # the CPU takes a GRU apart: its forward has the products that are counted here
    with FlopCounterMode(display=False) as real:
        gru(nn.GRU(4, 6, batch_first=True), torch.empty(3, 5, 4))
    assert real.get_total_flops() == 5400


def test_a_packed_sequence_without_its_order() -> None:
    sorted_by_hand = pack_sequence([torch.zeros(3, 4, device="meta"), torch.zeros(1, 4, device="meta")])
    assert isinstance(sorted_by_hand, PackedSequence)
    with pytest.raises(ShapeError, match=r"^a packed sequence without sorted_indices: use PackedSequenceBatch\.packed"):
        gru(nn.GRU(4, 6, batch_first=True, device="meta"), sorted_by_hand)
