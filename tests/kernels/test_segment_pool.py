from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.segment_pool import (
    segment_max_backward_cuda,
    segment_max_cuda,
    segment_sum_backward_cuda,
    segment_sum_cuda,
)
from labkit.reference import segments as reference
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


def bins_of(config: LaunchConfig) -> torch.Tensor:
    return bin_rows(OFFSETS, config.giants(EVENTS), config.thresholds)


@each_regime
@each_dim
@pytest.mark.parametrize("mean", [False, True], ids=["sum", "mean"])
def test_sums_and_means(cpu_device: CpuDevice, config: LaunchConfig, dim: int, mean: bool) -> None:
    values = random(0, EVENTS, dim)
    values[OFFSETS[6], 0] = torch.nan  # stays in row 6
    found = segment_sum_cuda(values, OFFSETS, bins_of(config), config.thresholds, mean)
    expected = reference.segment_sum(values.numpy(), HOST, mean=mean)
    # n additions of float32, one division
    size = reference.segment_sum(values.abs().numpy(), HOST, mean=mean)
    assert_within(found, expected, ROUNDING[torch.float32] * size * (np.array(LENGTHS)[:, None] + 2))
    assert (found[np.array(LENGTHS) == 0] == 0).all()


@each_regime
@each_dim
def test_maxima_and_their_places(cpu_device: CpuDevice, config: LaunchConfig, dim: int) -> None:
    values = random(1, EVENTS, dim).round()  # so that there are equals, of which the first counts
    values[OFFSETS[6] + 40, 0] = torch.nan
    values[OFFSETS[6] + 90, 0] = torch.nan
    values[OFFSETS[1] : OFFSETS[2]] = -torch.inf
    found, at = segment_max_cuda(values, OFFSETS, bins_of(config), config.thresholds)
    expected, places = reference.segment_max(values.numpy(), HOST)
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(at.numpy(), places)


@each_regime
@each_dim
def test_gradients(cpu_device: CpuDevice, config: LaunchConfig, dim: int) -> None:
    grad, bins = random(2, ROWS, dim), bins_of(config)
    for mean in (False, True):
        found = segment_sum_backward_cuda(grad, OFFSETS, bins, config.thresholds, EVENTS, mean)
        expected = reference.segment_sum_backward(grad.numpy(), HOST, mean=mean)
        assert_within(found, expected, ROUNDING[torch.float32] * np.abs(expected) * 2)
    _, places = reference.segment_max(random(1, EVENTS, dim).numpy(), HOST)
    found = segment_max_backward_cuda(grad, torch.from_numpy(places), OFFSETS, bins, config.thresholds, EVENTS)
    np.testing.assert_array_equal(found.numpy(), reference.segment_max_backward(grad.numpy(), places, HOST))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [12, 3])
def test_16_bit_storage_rounds_once(fast_device: CpuDevice, dtype: torch.dtype, dim: int) -> None:
    config = LaunchConfig(3, 33, 100)
    values, bins = random(3, EVENTS, dim).to(dtype), bins_of(config)
    wide = values.float().numpy()
    found = segment_sum_cuda(values, OFFSETS, bins, config.thresholds, True)
    expected = reference.segment_sum(wide, HOST, mean=True)
    size = reference.segment_sum(np.abs(wide), HOST, mean=True)
    in_float32 = ROUNDING[torch.float32] * size * (np.array(LENGTHS)[:, None] + 2)
    # below the least normal number a float16 is spaced by 2**-24
    assert_within(found, expected, in_float32 + ROUNDING[dtype] * np.abs(expected) + 2.0**-25)
    top, _ = segment_max_cuda(values, OFFSETS, bins, config.thresholds)
    np.testing.assert_array_equal(top.float().numpy(), reference.segment_max(wide, HOST)[0])


def test_one_sequence_of_a_million_events(fast_device: CpuDevice) -> None:
    events, config = 2**20, LaunchConfig()
    offsets = torch.tensor([0, 0, events, events])
    values = torch.ones(events, 1)
    values[777_777] = 3.0
    bins = bin_rows(offsets, config.giants(events), config.thresholds)
    assert segment_sum_cuda(values, offsets, bins, config.thresholds, False).tolist() == [[0], [events + 2], [0]]
    top, at = segment_max_cuda(values, offsets, bins, config.thresholds)
    assert (top.tolist(), at.tolist()) == ([[0], [3], [0]], [[-1], [777_777], [-1]])
    assert [name for name in fast_device.launched if "combine" in name]


def test_a_longer_row_than_promised_is_done_all_the_same(fast_device: CpuDevice) -> None:
    config = LaunchConfig(3, 33, 100, longest=90)  # there are 129 and 700
    values = random(4, EVENTS, 4)
    found = segment_sum_cuda(values, OFFSETS, bins_of(config), config.thresholds, False)
    size = reference.segment_sum(values.abs().numpy(), HOST)
    bound = ROUNDING[torch.float32] * size * (np.array(LENGTHS)[:, None] + 2)
    assert_within(found, reference.segment_sum(values.numpy(), HOST), bound)
    assert fast_device.launched == ["segment_sum<float, 4>"]


def test_no_rows_and_no_events_launch_nothing_that_is_not_needed(fast_device: CpuDevice) -> None:
    none = torch.zeros(1, dtype=torch.int64)
    bins = bin_rows(none, 0, (3, 33, 100))
    assert segment_sum_cuda(torch.zeros(0, 8), none, bins, (3, 33, 100), True).shape == (0, 8)
    assert segment_max_cuda(torch.zeros(0, 8), none, bins, (3, 33, 100))[0].shape == (0, 8)
    assert not fast_device.launched
    empty = torch.zeros(4, dtype=torch.int64)
    bins = bin_rows(empty, 0, (3, 33, 100))
    assert segment_sum_cuda(torch.zeros(0, 8), empty, bins, (3, 33, 100), True).tolist() == [[0.0] * 8] * 3


def test_values_that_are_not_aligned_to_four_features_are_taken_one_by_one(fast_device: CpuDevice) -> None:
    config = LaunchConfig(3, 33, 100)
    values = random(5, EVENTS * 4 + 1).view(-1)[1:].view(EVENTS, 4)
    assert values.data_ptr() % 16
    segment_sum_cuda(values, OFFSETS, bins_of(config), config.thresholds, False)
    assert fast_device.launched[0] == "segment_sum<float, 1>"
