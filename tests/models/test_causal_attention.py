"""Causal attention: windows over a stream of jagged rows allow exactly what blocks do, and cost what they say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from labkit.layouts.history_order import ends_of
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.packed import block_mask
from labkit.layouts.segments import row_ids
from labkit.models.causal_attention import CausalAttention, window_mask


def ids_of(lengths: Sequence[int]) -> Tensor:
    return row_ids(ends_of(torch.tensor(lengths)), sum(lengths))


def test_a_window_sees_itself_and_the_one_before() -> None:
    mask = window_mask(torch.tensor([0, 0, 1]), 2, causal=True)
    # rows a a | b: windows (a a) and (b .); columns: the window before, then the own
    assert mask.int().tolist() == [[[0, 0, 1, 0], [0, 0, 1, 1]], [[0, 0, 1, 0], [0, 0, 0, 1]]]
    mask = window_mask(torch.tensor([0, 1, 1]), 2, causal=True)
    # b is cut: its second event, alone in the second window, sees the first one in the window before
    assert mask.int().tolist() == [[[0, 0, 1, 0], [0, 0, 0, 1]], [[0, 1, 1, 0], [0, 0, 0, 1]]]


@given(st.lists(st.integers(0, 7), min_size=1, max_size=9), st.integers(0, 3), st.booleans())
def test_windows_allow_what_blocks_allow(lengths: list[int], wider: int, causal: bool) -> None:
    total, width = sum(lengths), max(1, *lengths, 1) + wider
    windows = window_mask(ids_of(lengths), width, causal=causal)
    count = windows.shape[0]
    assert windows.shape == (count, width, 2 * width)
    assert (count - 1) * width < max(1, total) <= count * width
    assert windows.any(-1).all()  # no query without a key
    dense = torch.zeros(count * width, (count + 1) * width, dtype=torch.bool)
    for i, window in enumerate(windows):
        dense[i * width : (i + 1) * width, i * width : (i + 2) * width] = window
    blocks = block_mask(ids_of(lengths)[None] + 1, causal=causal)[0]
    found = dense[:total, width : width + total]
    assert not dense[:total, :width].any()  # nothing before the first event
    assert torch.equal(found.tril(), blocks.tril())
    assert not causal or torch.equal(found, blocks)


@pytest.mark.parametrize("lengths", [(3, 0, 1, 9, 2, 4), (5,), (1, 1, 1), (4, 4, 4), (0, 0, 2)], ids=str)
def test_attention_in_windows_is_that_of_each_row_alone(lengths: Sequence[int]) -> None:
    torch.manual_seed(0)
    projected = torch.randn(sum(lengths), 3 * 8, requires_grad=True)
    attend = CausalAttention.of(JaggedBatch(projected, ends_of(torch.tensor(lengths)), len(lengths)), sum(lengths))
    found = attend(projected, 2)
    (gradient,) = torch.autograd.grad(found.square().sum(), projected)
    rows = []
    for row in torch.split(projected, list(lengths)):
        query, key, value = (part.transpose(0, 1) for part in row.view(-1, 3, 2, 4).unbind(1))
        rows.append(scaled_dot_product_attention(query, key, value, is_causal=True).transpose(0, 1).flatten(1))
    expected = torch.cat(rows)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), projected)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-5)


def test_one_long_row_does_not_make_short_ones_long() -> None:
    # 100 rows of 2 and one of 50: 250 events are 5 windows of 50, and not 101 rows of 50
    lengths = torch.tensor([2] * 100 + [50])
    attend = CausalAttention.of(JaggedBatch(torch.zeros(250), ends_of(lengths), 101), 250)
    assert attend.shape == (5, 50)
    assert attend.mask is not None
    assert attend.mask.shape == (5, 1, 50, 100)
    assert attend.positions is not None
    assert attend.positions[:4].tolist() == [0, 1, 0, 1]
    assert attend.positions[-1] == 49
