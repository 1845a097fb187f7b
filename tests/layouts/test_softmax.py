"""Softmax over real events: rows without any give exactly 0, with finite gradients, dense and by segments."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from labkit.layouts.masks import valid_mask
from labkit.layouts.segments import row_ids
from labkit.layouts.softmax import masked_softmax, segment_softmax

LENGTHS = torch.tensor([2, 0, 4, 1])


def by_rows(scores: Tensor) -> list[Tensor]:
    """Softmax of each row alone, by torch."""
    return [torch.softmax(row[:n], 0) for row, n in zip(scores, LENGTHS.tolist(), strict=True)]


@pytest.mark.parametrize("scale", [1.0, 1e4], ids=["small", "large"])
def test_each_row_is_the_softmax_of_its_events_and_0_elsewhere(scale: float) -> None:
    torch.manual_seed(0)
    scores, valid = scale * torch.randn(4, 5), valid_mask(LENGTHS, 5)
    dense = masked_softmax(scores, valid)
    ids = torch.repeat_interleave(torch.arange(4), LENGTHS)
    ragged = segment_softmax(scores[valid], ids, 4)
    expected = by_rows(scores)
    for row, weights in enumerate(expected):
        torch.testing.assert_close(dense[row, : len(weights)], weights)
    torch.testing.assert_close(ragged, torch.cat(expected))
    assert dense[~valid].tolist() == [0.0] * int((~valid).sum())
    assert dense[1].tolist() == [0.0] * 5


def test_gradients_are_those_of_each_row_alone_and_finite() -> None:
    torch.manual_seed(0)
    scores = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    valid = valid_mask(LENGTHS, 5)
    ids = torch.repeat_interleave(torch.arange(4), LENGTHS)
    weight = torch.randn(4, 5, dtype=torch.float64)
    total = sum((row * w[: len(row)]).sum() for row, w in zip(by_rows(scores), weight, strict=True))
    (expected,) = torch.autograd.grad(total, scores)
    for own in (
        (masked_softmax(scores, valid) * weight).sum(),
        (segment_softmax(scores[valid], ids, 4) * weight[valid]).sum(),
    ):
        (gradient,) = torch.autograd.grad(own, scores)
        torch.testing.assert_close(gradient, expected)
    assert torch.autograd.gradcheck(lambda x: masked_softmax(x, valid), (scores,))
    assert torch.autograd.gradcheck(lambda x: segment_softmax(x[valid], ids, 4), (scores,))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_what_lies_in_the_padding_does_not_matter(garbage: float) -> None:
    scores, valid = torch.ones(2, 3), valid_mask(torch.tensor([2, 0]), 3)
    scores[~valid] = garbage
    scores.requires_grad_()
    weights = masked_softmax(scores, valid)
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    (gradient,) = torch.autograd.grad((weights * torch.arange(3)).sum(), scores)
    assert gradient.isfinite().all()


def test_the_usual_ways_fail_where_this_one_does_not() -> None:
    valid = valid_mask(torch.tensor([0]), 3)
    scores = torch.tensor([[1.0, 2.0, 3.0]])
    assert torch.softmax(scores.masked_fill(~valid, -torch.inf), -1).isnan().all()
    assert torch.softmax(scores.masked_fill(~valid, -1e9), -1).tolist() == [[pytest.approx(1 / 3)] * 3]
    assert masked_softmax(scores, valid).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_summed_in_float32(dtype: torch.dtype) -> None:
    # 4096 equal scores: a bfloat16 sum of ones would stop at 256, and the weights would add up to 16
    scores = torch.zeros(1, 4096, dtype=dtype)
    dense = masked_softmax(scores, torch.ones(1, 4096, dtype=torch.bool))
    ragged = segment_softmax(scores[0], torch.zeros(4096, dtype=torch.int64), 1)
    for weights in (dense[0], ragged):
        assert weights.dtype == dtype
        assert weights.float().sum() == 1


def test_no_events_at_all() -> None:
    assert segment_softmax(torch.zeros(0), torch.zeros(0, dtype=torch.int64), 3).shape == (0,)
    assert row_ids(torch.tensor([0, 0, 0]), 0).shape == (0,)
