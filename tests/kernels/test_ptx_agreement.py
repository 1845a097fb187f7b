"""The PTX that NVRTC made of each kernel does what the same source does on the CPU runner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows, bin_rows_cuda
from labkit.gpu.ops.copies import jagged_to_padded_cuda, padded_to_jagged_cuda
from labkit.gpu.ops.din_attention import attention_pool_backward_cuda, attention_pool_cuda
from labkit.gpu.ops.embedding_pool import embedding_pool_cuda, embedding_pool_weight_grad_cuda
from labkit.gpu.ops.segment_pool import (
    segment_max_backward_cuda,
    segment_max_cuda,
    segment_sum_backward_cuda,
    segment_sum_cuda,
)
from tests.kernels.ptx_device import BothDevices, assert_same, ptx_device
from tests.kernels.ragged import EVENTS, LENGTHS, OFFSETS, REGIMES, random

ROWS = len(LENGTHS)

each_regime = pytest.mark.parametrize("config", REGIMES.values(), ids=REGIMES)
#: A group of lanes with a surplus one, and two tiles of one feature a lane.
each_dim = pytest.mark.parametrize("dim", [12, 33])


#: g++ makes no fused multiply-add of a product and a sum; told not to either, NVRTC must give the same bits.
UNFUSED = ("--fmad=false",)


@pytest.fixture
def both() -> Iterator[BothDevices]:
    """Both runners, equal bit by bit."""
    with ptx_device(BothDevices(UNFUSED)) as device:
        assert isinstance(device, BothDevices)
        yield device
        assert device.compared > 0


def nearly(terms: torch.Tensor, roundings: int) -> BothDevices:
    """Both runners, for sums whose terms are rounded differently.

    Args:
        terms: (.., n) what is added up in one result.
        roundings: of a result, each half a unit in the last place of the sum of the terms' magnitudes at most.
    """
    return BothDevices(allowed=roundings * 2.0**-24 * float(terms.abs().sum(-1).max()))


def bins_of(config: LaunchConfig) -> torch.Tensor:
    return bin_rows(OFFSETS, config.giants(EVENTS), config.thresholds)


@each_regime
def test_bins(both: BothDevices, config: LaunchConfig) -> None:
    found, expected = bin_rows_cuda(OFFSETS, config.giants(EVENTS), config.thresholds), bins_of(config)
    assert torch.equal(found[-ROWS:], expected[-ROWS:])
    assert [name for name, _ in both.launched][:3] == ["count_rows", "start_classes", "place_rows"]


@pytest.mark.parametrize("width", [1, 40, 700])
@pytest.mark.parametrize("tail", [(4,), (3,), ()], ids=["vectors", "words", "scalars"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_copies(both: BothDevices, dtype: torch.dtype, tail: tuple[int, ...], width: int) -> None:
    values = (random(0, EVENTS, *tail) * 50).to(dtype)
    padded = jagged_to_padded_cuda(values, OFFSETS, width, 7)
    back = padded_to_jagged_cuda(padded, OFFSETS, EVENTS, 9)
    assert torch.equal(padded, torch.ops.labkit.jagged_to_padded(values, OFFSETS, width, 7))
    assert torch.equal(back, torch.ops.labkit.padded_to_jagged(padded, OFFSETS, EVENTS, 9))


@pytest.mark.parametrize(
    ("dtype", "config"),
    [
        *(pytest.param(torch.float32, config, id=f"f32-{name}") for name, config in REGIMES.items()),
        pytest.param(torch.float16, REGIMES["mixed"], id="f16-mixed"),
        pytest.param(torch.bfloat16, REGIMES["mixed"], id="bf16-mixed"),
    ],
)
@each_dim
def test_pooling(both: BothDevices, dtype: torch.dtype, dim: int, config: LaunchConfig) -> None:
    values, grad, bins = random(1, EVENTS, dim).to(dtype), random(2, ROWS, dim).to(dtype), bins_of(config)
    values[5, 0] = torch.nan
    segment_sum_cuda(values, OFFSETS, bins, config.thresholds, True)
    segment_sum_backward_cuda(grad, OFFSETS, bins, config.thresholds, EVENTS, True)
    _, places = segment_max_cuda(values, OFFSETS, bins, config.thresholds)
    segment_max_backward_cuda(grad, places, OFFSETS, bins, config.thresholds, EVENTS)
    giants = config.giants(EVENTS) > 0
    assert any("combine" in name for name, _ in both.launched) == giants


def embeddings(dim: int, config: LaunchConfig, *, weighted: bool) -> None:
    table, ids = random(3, 50, dim), torch.from_numpy(np.random.default_rng(4).integers(0, 50, EVENTS))
    weights = random(5, EVENTS) if weighted else None
    bins = bins_of(config)
    embedding_pool_cuda(table, ids, weights, OFFSETS, bins, config.thresholds, False)
    embedding_pool_weight_grad_cuda(random(6, ROWS, dim), table, ids, OFFSETS, bins, config.thresholds, False)


@each_regime
@each_dim
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_embeddings(both: BothDevices, weighted: bool, dim: int, config: LaunchConfig) -> None:
    embeddings(dim, config, weighted=weighted)


@each_dim
def test_embeddings_as_they_are_shipped(dim: int) -> None:
    # a product that is fused with its sum is not rounded: at most one rounding of each term, of 700 of them at most
    terms = random(3, 50, dim).abs().max() * random(5, EVENTS).abs()
    longest = int(np.argmax(LENGTHS))
    of_row = terms[OFFSETS[longest] : OFFSETS[longest + 1]]
    with ptx_device(nearly(of_row, 2)) as device:
        embeddings(dim, REGIMES["mixed"], weighted=True)
    assert len(device.launched) >= 2


@each_regime
@each_dim
@pytest.mark.parametrize("size", [1.0, 80.0], ids=["small", "large"])
def test_attention(size: float, dim: int, config: LaunchConfig) -> None:
    values, scores, bins = random(7, EVENTS, dim), random(8, EVENTS) * size, bins_of(config)
    scores[random(9, EVENTS) < -0.84] = -torch.inf
    scores[OFFSETS[4] : OFFSETS[5]] = -torch.inf
    grad = random(10, ROWS, dim)
    # The exponential is the reason: CUDA's is within 2 units in the last place (CUDA C++ Programming Guide,
    # "Mathematical Functions"), glibc's within 1; weights are 1 at most. So inner products of values and gradients are
    # apart by 6 halves of a unit of their terms, and by 2 more for fused products. The sum of up to 700 weights, each
    # apart by as much, is as far from its own greatest terms.
    terms = values.abs().amax(0) * grad.abs().amax(0)
    with ptx_device(nearly(terms, 8)) as device:
        out, top, total = attention_pool_cuda(scores, values, OFFSETS, bins, config.thresholds)
        attention_pool_backward_cuda(grad, out, top, total, scores, values, OFFSETS, bins, config.thresholds)
    assert any("backward" in name for name, _ in device.launched)


def test_the_comparison_can_fail() -> None:
    x = np.linspace(1, 2, 8, dtype=np.float32)
    one_off = np.nextafter(x, np.float32(3))
    with pytest.raises(AssertionError):
        assert_same(one_off, x, 0)
    assert_same(one_off, x, 3e-7)
    with pytest.raises(AssertionError):
        assert_same(x + np.float32(1e-5), x, 3e-7)
    with pytest.raises(AssertionError):
        assert_same(np.where(x == 1, np.float32(np.nan), x), x, 3e-7)
    with pytest.raises(AssertionError):
        assert_same(np.array([0.0], np.float32), np.array([-0.0], np.float32), 0)
