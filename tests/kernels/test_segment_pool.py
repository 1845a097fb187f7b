from __future__ import annotations

import numpy as np
import torch

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.segment_pool import (
    segment_max_backward_cuda,
    segment_max_cuda,
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
    random,
)

HOST = OFFSETS.numpy()
ROWS = len(LENGTHS)


def bins_of(config: LaunchConfig) -> torch.Tensor:
    return bin_rows(OFFSETS, config.giants(EVENTS), config.thresholds)


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


def test_places_that_are_not_aligned_to_four_are_taken_one_by_one(fast_device: CpuDevice) -> None:
    config, values, grad = LaunchConfig(3, 33, 100), random(6, EVENTS, 4), random(7, ROWS, 4)
    bins = bins_of(config)
    at = torch.zeros(ROWS * 4 + 1, dtype=torch.int32)[1:].view(ROWS, 4)
    at.copy_(segment_max_cuda(values, OFFSETS, bins, config.thresholds)[1])
    assert at.data_ptr() % 16
    fast_device.launched.clear()
    found = segment_max_backward_cuda(grad, at, OFFSETS, bins, config.thresholds, EVENTS)
    assert fast_device.launched == ["segment_max_backward<float, 1>"]
    expected = reference.segment_max_backward(grad.numpy(), at.numpy(), HOST)
    np.testing.assert_array_equal(found.numpy(), expected)
