from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool_backward_cuda, attention_pool_cuda
from labkit.reference import attention as reference
from tests.kernels.cpu_device import CpuDevice
from tests.kernels.ragged import (
    EVENTS,
    LENGTHS,
    OFFSETS,
    ROUNDING,
    assert_within,
    each_dim,
    each_regime,
    random,
)

HOST = OFFSETS.numpy()
ROWS = len(LENGTHS)
EPS = ROUNDING[torch.float32]
#: Of CUDA's expf in units in the last place. Source: CUDA C++ Programming Guide, "Mathematical Functions".
EXP_ULP = 2

IDS = np.repeat(np.arange(ROWS), LENGTHS)
SIZES = np.resize([1, 80, 1000], ROWS)  # of the scores, row by row: small, large, and beyond the range of exp


def masked_scores(sizes: NDArray[Any] = SIZES) -> Tensor:
    """(T,) scores, a fifth of them masked, row 4 wholly; row 8 has a NaN."""
    scores = random(0, EVENTS) * torch.from_numpy(sizes[IDS]).float()
    scores[random(1, EVENTS) < -0.84] = -torch.inf
    scores[OFFSETS[4] : OFFSETS[5]] = -torch.inf
    scores[OFFSETS[8] + 3] = torch.nan
    return scores


def bins_of(config: LaunchConfig) -> Tensor:
    return bin_rows(OFFSETS, config.giants(EVENTS), config.thresholds)


class Softmax:
    """What the reference says of the scores, and how far from it float32 may be.

    Attributes:
        result: of the reference.
        weights: (T,) of each event in its row, 0 where it is masked.
        relative: (T,) bound of the error of a weight: exponents are differences of rounded numbers, each followed by an
            exponential; online, a weight is rescaled whenever the maximum grows, at most once an event; and a sum of n.
    """

    def __init__(self, scores: Tensor, values: Tensor) -> None:
        self.result = reference.attention_pool(scores.numpy(), values.numpy(), HOST)
        host, top, total = scores.double().numpy(), self.result.top[IDS], self.result.total[IDS]
        live = host != -np.inf
        away = np.where(live, host, 0) - np.where(live, top, 0)
        self.weights = np.where(live, np.exp(away) / np.where(live, total, 1), 0)
        largest = np.zeros(ROWS)
        np.maximum.at(largest, IDS, np.abs(np.where(np.isfinite(host), host, 0)))
        self.relative = 2 * EPS * (3 * largest[IDS] + (EXP_ULP + 3) * np.array(LENGTHS)[IDS] + 8)

    def pooled(self, each: NDArray[Any]) -> NDArray[Any]:
        """(B, ...) sums over rows of bounds of the weights times (T, ...) numbers."""
        bound = self.weights * self.relative
        weighted = bound.reshape(-1, *[1] * (each.ndim - 1)) * np.abs(np.nan_to_num(each))
        total = np.zeros((ROWS, *each.shape[1:]))
        np.add.at(total, IDS, weighted)
        return total


@each_regime
@each_dim
def test_attention(cpu_device: CpuDevice, config: LaunchConfig, dim: int) -> None:
    scores, values = masked_scores(), random(2, EVENTS, dim)
    values[OFFSETS[4] + 1] = torch.nan  # of a masked event
    found, top, total = attention_pool_cuda(scores, values, OFFSETS, bins_of(config), config.thresholds)
    exact = Softmax(scores, values)
    assert_within(found, exact.result.out, exact.pooled(values.numpy()))
    assert_within(total, exact.result.total, exact.pooled(np.ones(EVENTS)) * exact.result.total)
    finite = ~np.isnan(exact.result.total)
    np.testing.assert_array_equal(top.numpy()[finite], exact.result.top[finite])
    assert (~finite).nonzero()[0].tolist() == [8]
    assert (found[[row for row, length in enumerate(LENGTHS) if length == 0 or row == 4]] == 0).all()


@each_regime
@each_dim
def test_gradients(cpu_device: CpuDevice, config: LaunchConfig, dim: int) -> None:
    scores, values, grad = masked_scores(), random(2, EVENTS, dim), random(3, ROWS, dim)
    exact = Softmax(scores, values)
    out, top, total = (torch.from_numpy(part.astype(np.float32)) for part in exact.result)
    of_scores, of_values = attention_pool_backward_cuda(
        grad, out, top, total, scores, values, OFFSETS, bins_of(config), config.thresholds
    )
    arguments = (grad.numpy(), scores.numpy(), values.numpy(), HOST)
    expected_scores, expected_values = reference.attention_pool_backward(*arguments)
    # below the least normal number results are flushed to 0 or spaced by a constant
    assert_within(of_values, expected_values, np.abs(expected_values) * exact.relative[:, None] + 2.0**-126)
    inner = (np.abs(arguments[0])[IDS] * (np.abs(arguments[2]) + np.abs(exact.result.out)[IDS])).sum(1)
    bound = exact.weights * inner * (exact.relative + EPS * (2 * dim + 4)) + 2.0**-126
    assert_within(of_scores, expected_scores, bound)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_storage_rounds_once(fast_device: CpuDevice, dtype: torch.dtype) -> None:
    config = LaunchConfig(3, 33, 100)
    scores, values = masked_scores(np.ones(ROWS)).to(dtype), random(2, EVENTS, 12).to(dtype)
    found, _, _ = attention_pool_cuda(scores, values, OFFSETS, bins_of(config), config.thresholds)
    exact = Softmax(scores.float(), values.float())
    in_float32 = exact.pooled(values.float().numpy())
    assert_within(found, exact.result.out, in_float32 + ROUNDING[dtype] * np.abs(exact.result.out) + 2.0**-25)


def test_a_score_of_infinity_makes_its_own_row_nan(fast_device: CpuDevice) -> None:
    scores, offsets = torch.tensor([1.0, torch.inf, 2.0]), torch.tensor([0, 2, 3])
    bins = bin_rows(offsets, 0, (3, 33, 100))
    found, _, _ = attention_pool_cuda(scores, torch.ones(3, 4), offsets, bins, (3, 33, 100))
    assert found[0].isnan().all()
    assert found[1].tolist() == [1.0] * 4


def test_one_sequence_of_a_million_events(fast_device: CpuDevice) -> None:
    events, config = 2**20, LaunchConfig()
    offsets = torch.tensor([0, 0, events])
    scores, values = torch.zeros(events), torch.ones(events, 1)
    values[: events // 2] = 3.0
    bins = bin_rows(offsets, config.giants(events), config.thresholds)
    found, top, total = attention_pool_cuda(scores, values, offsets, bins, config.thresholds)
    assert (found.tolist(), top.tolist(), total.tolist()) == ([[0], [2]], [-torch.inf, 0], [0, events])


def test_no_rows_launch_nothing(fast_device: CpuDevice) -> None:
    none = torch.zeros(1, dtype=torch.int64)
    bins = bin_rows(none, 0, (3, 33, 100))
    out, top, total = attention_pool_cuda(torch.zeros(0), torch.zeros(0, 8), none, bins, (3, 33, 100))
    assert (out.shape, top.shape, total.shape) == ((0, 8), (0,), (0,))
    assert not fast_device.launched
