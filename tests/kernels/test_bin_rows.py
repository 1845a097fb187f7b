from __future__ import annotations

import pytest
import torch

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows, bin_rows_cuda
from labkit.reference import segments as reference
from tests.kernels.cpu_device import CpuDevice
from tests.kernels.ragged import EVENTS, LENGTHS, OFFSETS, REGIMES, each_regime


def meaning(bins: torch.Tensor, giants: int) -> tuple[list[int], ...]:
    """Header, first pieces of the giants that there are, order; what lies between is never read."""
    entries = bins.tolist()
    return entries[:4], entries[4 : 4 + entries[0] + 1], entries[4 + giants + 1 :]


def test_without_room_for_giants_they_are_long(fast_device: CpuDevice) -> None:
    found = bin_rows_cuda(OFFSETS, 0, (3, 33, 100))
    assert fast_device.launched == ["count_rows", "start_classes", "place_rows"]
    assert found[:4].tolist() == [0, sum(length > 33 for length in LENGTHS), sum(n > 3 for n in LENGTHS), 0]
    assert torch.equal(found, bin_rows(OFFSETS, 0, (3, 33, 100)))


@each_regime
def test_torch_sorts_as_the_reference(config: LaunchConfig) -> None:
    giants = config.giants(EVENTS)
    found = bin_rows(OFFSETS, giants, config.thresholds)
    expected = torch.from_numpy(reference.bin_rows(OFFSETS.numpy(), giants, *config.thresholds))
    assert meaning(found, giants) == meaning(expected, giants)


@pytest.mark.parametrize("op", [bin_rows, bin_rows_cuda])
def test_no_rows(fast_device: CpuDevice, op: object) -> None:
    assert op(torch.zeros(1, dtype=torch.int64), 0, REGIMES["mixed"].thresholds).tolist() == [0] * 5  # type: ignore[operator]
    assert not fast_device.launched
