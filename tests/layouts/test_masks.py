"""Masks: one meaning, each API of torch fed with its own, and rows without keys that give 0."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from labkit.errors import ShapeError
from labkit.layouts.masks import (
    Side,
    additive_mask,
    attention_mask,
    key_padding_mask,
    mha_mask,
    padded_on,
    positions,
    sdpa_mask,
    valid_mask,
    zero_padding,
)
from labkit.layouts.padded import PaddedBatch, valid_slots

LENGTHS = torch.tensor([2, 4, 0])
SIDES = [Side.LEFT, Side.RIGHT]


# --- what is real, and what may be seen


def test_valid_is_true_for_real_events_on_either_side() -> None:
    assert valid_mask(LENGTHS, 4).tolist() == valid_slots(LENGTHS, 4).tolist()
    assert valid_mask(LENGTHS, 4).int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]
    assert valid_mask(LENGTHS, 4, "left").int().tolist() == [[0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("side", "keys"),
    [
        (Side.LEFT, [[0, 0, 1, 2], [1, 2, 3, 4], [0, 0, 0, 0]]),
        (Side.RIGHT, [[1, 2, 2, 2], [1, 2, 3, 4], [0, 0, 0, 0]]),
    ],
    ids=str,
)
def test_causal_and_padding_together(side: Side, keys: list[list[int]]) -> None:
    allowed = attention_mask(valid_mask(LENGTHS, 4, side), causal=True)
    assert allowed.sum(-1).tolist() == keys


def test_without_causal_every_slot_sees_every_real_event() -> None:
    assert attention_mask(valid_mask(LENGTHS, 4)).sum(-1).tolist() == [[2] * 4, [4] * 4, [0] * 4]


def test_positions_restart_in_each_row_on_either_side() -> None:
    assert positions(valid_mask(LENGTHS, 4)).tolist() == [[0, 1, 0, 0], [0, 1, 2, 3], [0, 0, 0, 0]]
    assert positions(valid_mask(LENGTHS, 4, "left")).tolist() == [[0, 0, 0, 1], [0, 1, 2, 3], [0, 0, 0, 0]]


def test_the_padding_moves_to_the_left() -> None:
    events, vectors = torch.tensor([[5, 0, 9], [1, 2, 3]]), torch.arange(12.0).view(2, 3, 2)
    batch = PaddedBatch(
        {"items": events, "vectors": vectors, "label": torch.tensor([1, 0])},
        torch.tensor([2, 3]),
        valid_mask(torch.tensor([2, 3]), 3),
        2,
    )
    left = padded_on(batch, "left")
    assert isinstance(left.values, dict)
    assert left.values["items"].tolist() == [[0, 5, 0], [1, 2, 3]]  # the id 0 is an event, and stays one
    assert left.values["vectors"][0].tolist() == [[0, 0], [0, 1], [2, 3]]
    assert left.values["label"].tolist() == [1, 0]
    assert left.valid.int().tolist() == [[0, 1, 1], [1, 1, 1]]
    assert padded_on(batch, "right") is batch
    bare = padded_on(PaddedBatch(events, batch.lengths, batch.valid, 2), Side.LEFT)
    assert isinstance(bare.values, Tensor)
    assert bare.values.tolist() == [[0, 5, 0], [1, 2, 3]]


# --- each API of torch


def naive(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
    """Attention by loops over rows and queries, with 0 for a query without keys."""
    out = torch.zeros_like(v)
    for row in range(q.shape[0]):
        for query in range(q.shape[1]):
            keys = allowed[row, query].nonzero()[:, 0]
            if len(keys):
                scores = k[row, keys] @ q[row, query] / q.shape[-1] ** 0.5
                out[row, query] = torch.softmax(scores, 0) @ v[row, keys]
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("side", SIDES, ids=str)
def test_scaled_dot_product_attention_attends_where_true(side: Side, causal: bool) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(3, 4, 8, requires_grad=True) for _ in range(3))
    allowed = attention_mask(valid_mask(LENGTHS, 4, side), causal=causal)
    for mask in (sdpa_mask(allowed), additive_mask(allowed)[:, None]):
        out = scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], attn_mask=mask)[:, 0]
        torch.testing.assert_close(out, naive(q, k, v, allowed), rtol=1e-5, atol=1e-5)
        assert out[2].abs().max() == 0  # a row without any event: exactly 0
        gradients = torch.autograd.grad(out.sum(), (q, k, v))
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("need_weights", [True, False], ids=["weights", "fast"])
@pytest.mark.parametrize("side", SIDES, ids=str)
def test_multihead_attention_ignores_where_true(side: Side, need_weights: bool, training: bool) -> None:
    torch.manual_seed(0)
    heads, valid = 2, valid_mask(LENGTHS, 4, side)
    attention = nn.MultiheadAttention(8, heads, batch_first=True).train(training)
    x = torch.randn(3, 4, 8, requires_grad=True)
    allowed = attention_mask(valid, causal=True)
    out, _ = attention(x, x, x, attn_mask=mha_mask(allowed, heads), need_weights=need_weights)
    out = zero_padding(out, valid)
    q, k, v = (part.view(3, 4, heads, 4).transpose(1, 2).flatten(0, 1) for part in projected(attention, x))
    own = naive(q, k, v, allowed.repeat_interleave(heads, 0)).view(3, heads, 4, 4).transpose(1, 2).flatten(2)
    expected = zero_padding(attention.out_proj(own), valid)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert gradient.isfinite().all()
    assert gradient[~valid].abs().max() == 0


def projected(attention: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, ...]:
    assert attention.in_proj_weight is not None
    return nn.functional.linear(x, attention.in_proj_weight, attention.in_proj_bias).chunk(3, dim=-1)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_an_encoder_layer_ignores_where_true(training: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).train(training)
    lengths, x = torch.tensor([2, 4, 1]), torch.randn(3, 4, 8)
    valid = valid_mask(lengths, 4)
    by_padding = layer(x, src_key_padding_mask=key_padding_mask(valid))
    by_mask = layer(x, src_mask=mha_mask(attention_mask(valid), 2))
    torch.testing.assert_close(by_padding[valid], by_mask[valid], rtol=1e-5, atol=1e-5)
    alone = torch.cat([layer(x[row : row + 1, :n])[0] for row, n in enumerate(lengths.tolist())])
    torch.testing.assert_close(by_padding[valid], alone, rtol=1e-5, atol=1e-5)


def test_the_wrong_polarity_is_not_the_same() -> None:
    # the tests above can fail: what one API calls a mask is the opposite of the other's
    torch.manual_seed(0)
    x, valid = torch.randn(1, 1, 4, 8), valid_mask(torch.tensor([3]), 4)
    allowed = attention_mask(valid)
    right = scaled_dot_product_attention(x, x, x, attn_mask=sdpa_mask(allowed))
    wrong = scaled_dot_product_attention(x, x, x, attn_mask=~sdpa_mask(allowed))
    assert not torch.allclose(right[0, 0, :3], wrong[0, 0, :3])


# --- the future


def changed_before(t: int, causal: bool) -> Tensor:
    """How much the outputs before event t change when event t does."""
    torch.manual_seed(0)
    valid = valid_mask(torch.tensor([6, 4]), 6)
    mask = sdpa_mask(attention_mask(valid, causal=causal))
    x = torch.randn(2, 1, 6, 8)
    other = x.clone()
    other[:, :, t] += 1
    before, after = (scaled_dot_product_attention(y, y, y, attn_mask=mask) for y in (x, other))
    return (before - after)[:, :, :t].abs().max()


def test_the_future_does_not_leak_and_the_check_can_fail() -> None:
    assert changed_before(3, causal=True) == 0
    assert changed_before(3, causal=False) > 0


# --- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: attention_mask(torch.ones(2, 3)),
            "valid must be (R, L) bool, True = real: got (2, 3) of torch.float32.",
        ),
        (lambda: key_padding_mask(LENGTHS), "valid must be (R, L) bool, True = real: got (3,) of torch.int64."),
        (lambda: sdpa_mask(valid_mask(LENGTHS, 4)), "allowed must be (R, L, L) bool, True = real: got (3, 4)"),
        (lambda: valid_mask(LENGTHS, 4, "top"), "'top' is not a valid Side"),
    ],
)
def test_masks_of_another_kind_are_refused(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        call()
    assert isinstance(error.value, ShapeError) or "Side" in message


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([2, 1], r"^lengths must be a \(R,\) tensor of whole numbers: got a list\.$"),
        (torch.tensor([2, 4, 7]), r"^lengths must be within 0 \.\. 3, the width: got 7\.$"),
        (torch.tensor([2, -1]), r"^lengths must be within 0 \.\. 3, the width: got -1\.$"),
        (torch.tensor([2.0]), r"^lengths must be \(R,\) whole numbers: got \(1,\) of torch.float32\.$"),
        (torch.tensor([[2]]), r"^lengths must be \(R,\) whole numbers: got \(1, 1\) of torch.int64\.$"),
    ],
)
def test_lengths_that_make_no_mask(lengths: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        valid_mask(lengths, 3)


def test_a_device_is_not_asked_for_its_lengths() -> None:
    assert valid_mask(torch.empty(4, dtype=torch.int64, device="meta"), 3).shape == (4, 3)
    assert valid_mask(torch.empty(0, dtype=torch.int64), 3).shape == (0, 3)
