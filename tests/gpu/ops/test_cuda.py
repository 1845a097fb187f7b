"""The ops on a GPU: as the same ops on the CPU in float64, in every regime, and in a captured graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from labkit.errors import KernelArgumentError
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.copies import jagged_to_padded, padded_to_jagged
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.embedding_pool import embedding_pool
from labkit.gpu.ops.segment_pool import segment_max, segment_sum
from tests.kernels.ragged import EVENTS, LENGTHS, OFFSETS, each_dim, each_regime, random

pytestmark = pytest.mark.gpu

ROWS, ITEMS = len(LENGTHS), 50
IDS = random(9, EVENTS).mul(7).long().abs() % ITEMS
#: Numbers around 1; a mean of 700 of them in float32 is rounded once to 11 or 8 bits, a gradient at most three times.
CLOSE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}


def pooled(device: str, dtype: torch.dtype, config: LaunchConfig, dim: int) -> dict[str, Tensor]:
    """Every result and gradient, computed on a device in a dtype, as float64 on the host."""
    bins = bin_rows(OFFSETS.to(device), config.giants(EVENTS), config.thresholds)
    rows: tuple[Any, ...] = (OFFSETS.to(device), bins, config.thresholds)
    # rounded to bfloat16, so that every dtype has the same inputs
    values, scores, table = (
        random(seed, *shape).bfloat16().to(device, dtype).requires_grad_()
        for seed, shape in ((0, (EVENTS, dim)), (1, (EVENTS,)), (2, (ITEMS, dim)))
    )
    ids, weight = IDS.to(device), random(3, ROWS, dim).bfloat16().to(device, dtype)
    calls: dict[str, tuple[Callable[[], Tensor], tuple[Tensor, ...]]] = {
        "mean": (lambda: segment_sum(values, *rows, True), (values,)),
        "max": (lambda: segment_max(values, *rows)[0], (values,)),
        "embedding": (lambda: embedding_pool(table, ids, scores, *rows, True), (table, scores)),
        "attention": (lambda: attention_pool(scores, values, *rows)[0], (scores, values)),
        "copies": (
            lambda: padded_to_jagged(jagged_to_padded(values, rows[0], 33, 0.0), rows[0], EVENTS, 0.0),
            (values,),
        ),
    }
    results = {}
    for name, (call, inputs) in calls.items():
        out = call()
        results[name] = out
        target = out * weight if out.shape == weight.shape else out
        for i, grad in enumerate(torch.autograd.grad(target.sum(), inputs)):
            results[f"{name} gradient {i}"] = grad
    return {name: result.detach().double().cpu() for name, result in results.items()}


@each_regime
@each_dim
@pytest.mark.parametrize("dtype", list(CLOSE), ids=str)
def test_a_gpu_gives_what_the_cpu_gives(config: LaunchConfig, dim: int, dtype: torch.dtype) -> None:
    expected = pooled("cpu", torch.float64, config, dim)
    found = pooled("cuda", dtype, config, dim)
    for name, result in found.items():
        torch.testing.assert_close(result, expected[name], rtol=CLOSE[dtype], atol=CLOSE[dtype], msg=name)


def test_two_runs_give_the_same_bits() -> None:
    first, second = (pooled("cuda", torch.float32, LaunchConfig(3, 33, 100), 64) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_everything_is_captured_in_a_graph() -> None:
    """Binning, pooling and gradients: nothing waits for the host, and a replay sees new values and new offsets."""
    config, offsets, values = LaunchConfig(3, 33, 100), OFFSETS.cuda(), random(0, EVENTS, 64).cuda()

    def step() -> Tensor:
        bins = bin_rows(offsets, config.giants(EVENTS), config.thresholds)
        return attention_pool(values[:, 0].contiguous(), values, offsets, bins, config.thresholds)[0]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()  # loads the kernels
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    other = torch.tensor(LENGTHS[::-1]).cumsum(0)
    offsets[1:].copy_(other)
    values.normal_()
    graph.replay()
    assert torch.equal(out, step())


def test_a_double_is_refused_before_the_launch() -> None:
    bins = bin_rows(OFFSETS.cuda(), 0, (3, 33, 100))
    with pytest.raises(KernelArgumentError, match="store float32, float16 or bfloat16"):
        segment_sum(
            torch.zeros(EVENTS, 4, device="cuda", dtype=torch.float64), OFFSETS.cuda(), bins, (3, 33, 100), True
        )


def test_more_than_two_to_the_31_elements() -> None:
    events, dim = 2**31 // 512 + 1000, 512
    values = torch.ones(events, dim, device="cuda", dtype=torch.float16)
    offsets = torch.tensor([0, events - 7, events], device="cuda")
    config = LaunchConfig()
    bins = bin_rows(offsets, config.giants(events), config.thresholds)
    found = segment_sum(values, offsets, bins, config.thresholds, True)
    assert torch.equal(found, torch.ones_like(found))
