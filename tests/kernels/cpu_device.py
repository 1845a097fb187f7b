"""A CUDA device that is not there: the host code of an op launches its real kernels on the CPU runner instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labkit.gpu.arguments import UNIT_BYTES, Argument, check_arguments, parameters_of
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.build import build
from labkit.gpu.host.program import Order, Program
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.ops import bin_rows, copies, din_attention, embedding_pool, segment_pool
from labkit.gpu.regimes import BLOCK
from labkit.gpu.sources import kernel_text

OPS = (bin_rows, copies, din_attention, embedding_pool, segment_pool)
ORDERS = (Order.FORWARD, Order.REVERSE, Order.RANDOM)


@cache
def program_of(op: str, expression: str, mode: Mode) -> Program:
    """The program of a kernel, built together with those of the same file and storage type."""
    kind = expression.partition("<")[2].split(",")[0]
    names = [name for name in KERNELS[op].name_expressions if name.partition("<")[2].split(",")[0] == kind]
    return build(KERNELS[op].path, names, mode=mode)


@dataclass
class CpuDevice:
    """What is launched runs at once and is asserted to be clean.

    Attributes:
        mode: of the CPU runner.
        order: of the threads.
        launched: name expressions, in the order of the launches.
    """

    mode: Mode
    order: Order = Order.FORWARD
    launched: list[str] = field(default_factory=list)

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        if not blocks:
            return
        self.launched.append(expression)
        source = KERNELS[op]
        parameters = parameters_of(kernel_text(source.path), expression)
        check_arguments(expression, parameters, arguments, device)
        passed = [as_array(argument, parameter.base) for argument, parameter in zip(arguments, parameters, strict=True)]
        program = program_of(op, expression, self.mode)
        run = program.launch(expression, (blocks,), (BLOCK,), passed, order=self.order, seed=7)
        assert run.clean, "\n".join(report.text for report in run.reports)
        assert run.completed


def as_array(argument: Argument, base: str = "") -> Any:
    """The memory of a tensor as NumPy sees it, bfloat16 as its bits; other arguments as they are.

    Where the kernel's type ``base`` is a unit of bytes, it is seen as numbers of that size, of 4 bytes for vectors.
    """
    if not isinstance(argument, Tensor):
        return argument
    if base in UNIT_BYTES:
        return argument.view(-1).numpy().view(f"u{min(UNIT_BYTES[base], 4)}")
    if argument.dtype is torch.bfloat16:
        return argument.view(torch.int16).numpy().view(np.uint16)
    return argument.numpy()


@contextmanager
def stand_in(mode: Mode, order: Order) -> Iterator[CpuDevice]:
    """Ops launch on the CPU runner, and what they allocate starts as NaN or as the greatest integer."""
    device, before = CpuDevice(mode, order), torch.are_deterministic_algorithms_enabled()
    with pytest.MonkeyPatch.context() as patch:
        for op in OPS:
            patch.setattr(op, "launch", device.launch)
        torch.use_deterministic_algorithms(True)  # torch.utils.deterministic.fill_uninitialized_memory is on by default
        try:
            yield device
        finally:
            torch.use_deterministic_algorithms(before)


@pytest.fixture(params=[*((Mode.FAST, order) for order in ORDERS), (Mode.CHECKED, Order.RANDOM)], ids="-".join)
def cpu_device(request: pytest.FixtureRequest) -> Iterator[CpuDevice]:
    """Each test four times: in three orders of the threads, and once with every access checked."""
    with stand_in(*request.param) as device:
        yield device


@pytest.fixture
def fast_device() -> Iterator[CpuDevice]:
    """For what needs no second order of the threads."""
    with stand_in(Mode.FAST, Order.FORWARD) as device:
        yield device
