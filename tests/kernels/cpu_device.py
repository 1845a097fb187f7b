"""The CPU runner in the place of a CUDA device, with every launch asserted to be clean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import pytest
import torch

from labkit.gpu.arguments import Argument
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.program import Order, Program
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.launch import launching_by
from labkit.gpu.verify.programs import Programs
from labkit.gpu.verify.stand_in import CpuDevice as Runner
from labkit.gpu.verify.stand_in import memory_of, poisoned_allocations

ORDERS = (Order.FORWARD, Order.REVERSE, Order.RANDOM)
as_array = memory_of


@cache
def _programs(op: str) -> Programs:
    return Programs(op, KERNELS[op].path)


def program_of(op: str, expression: str, mode: Mode) -> Program:
    """The program of a shipped kernel."""
    return _programs(op).of(mode, expression)


class CpuDevice:
    """What is launched runs at once and is asserted to be clean.

    Attributes:
        launched: name expressions, in the order of the launches.
    """

    def __init__(self, mode: Mode, order: Order = Order.FORWARD) -> None:
        self._runner = Runner(lambda op, expression: program_of(op, expression, mode), order)
        self.launched: list[str] = []

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        if blocks:
            self.launched.append(expression)
            self._runner.launch(op, expression, blocks, arguments, device)
            _, run = self._runner.launched[-1]
            assert run.clean, "\n".join(report.text for report in run.reports)


@contextmanager
def stand_in(mode: Mode, order: Order) -> Iterator[CpuDevice]:
    """Ops launch on the CPU runner, and what they allocate starts as NaN or as the greatest integer."""
    device = CpuDevice(mode, order)
    with poisoned_allocations(), launching_by(device.launch):
        yield device


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
