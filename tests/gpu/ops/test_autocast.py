"""Ops of several float tensors under autocast; on the CPU, as autocast and the ops are the same on a GPU."""

from __future__ import annotations

import pytest
import torch

from labkit.errors import KernelArgumentError
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.embedding_pool import embedding_pool

OFFSETS, THRESHOLDS = torch.tensor([0, 2, 2, 5]), (2, 4, 8)
ROWS = (OFFSETS, bin_rows(OFFSETS, 0, THRESHOLDS), THRESHOLDS)
SCORES = torch.tensor([1.0, 2.0, 3.0, 0.5, 0.25])
VALUES = torch.arange(15.0).view(5, 3) / 7
IDS = torch.tensor([0, 1, 2, 3, 4])


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_16_bit_scores_meet_float_values(half: torch.dtype) -> None:
    scores, values = SCORES.to(half).requires_grad_(), VALUES.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, _, _ = attention_pool(scores, values, *ROWS)
    assert out.dtype is torch.float32
    assert torch.equal(out, attention_pool(SCORES, VALUES, *ROWS)[0])
    of_scores, of_values = torch.autograd.grad(out.sum(), (scores, values))
    assert (of_scores.dtype, of_values.dtype) == (half, torch.float32)


def test_a_float_table_meets_16_bit_weights() -> None:
    weights, table = SCORES.bfloat16().requires_grad_(), VALUES.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = embedding_pool(table, IDS, weights, *ROWS, True)
        plain = embedding_pool(table, IDS, None, *ROWS, True)
    assert torch.equal(out, embedding_pool(VALUES, IDS, SCORES, *ROWS, True))
    assert torch.equal(plain, embedding_pool(VALUES, IDS, None, *ROWS, True))
    of_table, of_weights = torch.autograd.grad(out.sum(), (table, weights))
    assert (of_table.dtype, of_weights.dtype) == (torch.float32, torch.bfloat16)


def test_what_is_all_of_16_bits_stays_so() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert attention_pool(SCORES.bfloat16(), VALUES.bfloat16(), *ROWS)[0].dtype is torch.bfloat16


def test_compiled_it_promotes_too() -> None:
    def call(scores: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return attention_pool(scores, VALUES, *ROWS)[0]

    torch.compiler.reset()
    found = torch.compile(call, backend="aot_eager", fullgraph=True)(SCORES.bfloat16())
    assert torch.equal(found, attention_pool(SCORES, VALUES, *ROWS)[0])


def test_without_autocast_two_types_are_an_error() -> None:
    with pytest.raises(KernelArgumentError, match=r"scores must be torch.float32: got torch.bfloat16"):
        attention_pool(SCORES.bfloat16(), VALUES, *ROWS)
