"""What a trial launches on tensors of the host runs on tensors of the device, and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labkit.errors import KernelLaunchError
from labkit.gpu.arguments import Argument
from labkit.gpu.launch import launch, launching_by
from labkit.gpu.ops.segment_pool import segment_sum_backward_cuda, segment_sum_cuda
from labkit.gpu.verify.ragged import EVENTS, OFFSETS, REGIMES
from labkit.gpu.verify.segment_trials import bins_of
from labkit.gpu_check.there_and_back import ThereAndBack


class Device:
    """Fills what a kernel may write with a number, and what it may only read with another: that must not come back."""

    def __init__(self) -> None:
        self.seen: list[Argument] = []

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        self.seen += arguments
        for number, argument in enumerate(arguments):
            if isinstance(argument, Tensor):
                argument.fill_(5 if number == 0 else 3)


def call(carried: ThereAndBack) -> tuple[Tensor, Tensor]:
    values, config = torch.zeros(EVENTS, 4), REGIMES["mixed"]
    with launching_by(carried.launch):
        return segment_sum_cuda(values, OFFSETS, bins_of(config), config.thresholds, False), values


def test_outputs_come_back_and_inputs_stay_as_they_were() -> None:
    device = Device()
    carried = ThereAndBack(torch.device("cpu"), device.launch)
    offsets = OFFSETS.clone()
    found, values = call(carried)
    assert (found == 5).all()
    assert (values == 0).all()
    assert torch.equal(OFFSETS, offsets)
    assert carried.launched == ["segment_sum<float, 4>", "segment_sum_combine<float, 4>"]


def test_a_tensor_that_is_given_twice_is_one_on_the_device() -> None:
    device = Device()
    both = torch.zeros(4)
    text = "segment_sum_backward<float, 4>"
    arguments: list[Any] = [both, both, OFFSETS.clone(), torch.zeros(3, dtype=torch.int32), *[np.int32(1)] * 5]
    ThereAndBack(torch.device("cpu"), device.launch).launch("segment_pool", text, 1, arguments, both.device)
    assert device.seen[0] is device.seen[1]
    assert device.seen[0] is not both


def test_nothing_is_launched_for_no_blocks() -> None:
    device = Device()
    config = REGIMES["mixed"]
    with launching_by(ThereAndBack(torch.device("cpu"), device.launch).launch):
        segment_sum_backward_cuda(torch.zeros(0, 4), OFFSETS[:1], bins_of(config)[:5], config.thresholds, 0, True)
    assert device.seen == []


def test_by_default_the_real_launch_is_called_which_refuses_a_cpu() -> None:
    with pytest.raises(KernelLaunchError, match=r"segment_sum<float, 4> runs on a CUDA device, got tensors on cpu"):
        call(ThereAndBack(torch.device("cpu")))
    with pytest.raises(KernelLaunchError, match="runs on a CUDA device"):
        launch("segment_pool", "segment_sum<float, 4>", 1, [], torch.device("cpu"))
