"""A CUDA device that is not there: the host code of an op runs the PTX that NVRTC made of its real kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labkit.gpu.arguments import Argument
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.program import Order
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.launch import launching_by
from labkit.gpu.nvrtc import compile_source
from labkit.gpu.ptx.counts import Counts
from labkit.gpu.ptx.parse import Kernel, parse
from labkit.gpu.ptx.runner import run
from labkit.gpu.regimes import BLOCK
from labkit.gpu.sources import kernel_text
from labkit.gpu.verify.stand_in import poisoned_allocations
from tests.kernels.cpu_device import CpuDevice, as_array

ARCH = 90


@cache
def _kernels(op: str, kind: str, options: tuple[str, ...]) -> dict[str, Kernel]:
    """The kernels of an op whose first template argument is ``kind``, by name expression; compiled together."""
    source = KERNELS[op]
    names = [name for name in source.name_expressions if _kind(name) == kind]
    compiled = compile_source(kernel_text(source.path), source.file, arch=ARCH, name_expressions=names, options=options)
    parsed = parse(compiled.ptx)
    return {name: parsed[compiled.names[name]] for name in names}


def _kind(expression: str) -> str:
    return expression.partition("<")[2].split(",")[0]


def kernel_of(op: str, expression: str, options: tuple[str, ...] = ()) -> Kernel:
    """The PTX of one kernel."""
    return _kernels(op, _kind(expression), options)[expression]


@dataclass
class PtxDevice:
    """What is launched runs at once.

    Attributes:
        options: for the compiler.
        launched: name expression and counts of each launch, in order.
    """

    options: tuple[str, ...] = ()
    launched: list[tuple[str, Counts]] = field(default_factory=list)

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        if blocks:
            self.execute(op, expression, blocks, [as_array(a) for a in arguments])

    def execute(self, op: str, expression: str, blocks: int, arrays: list[Any]) -> None:
        self.launched.append((expression, run(kernel_of(op, expression, self.options), (blocks,), (BLOCK,), arrays)))


@dataclass
class BothDevices(PtxDevice):
    """Each launch runs from its PTX and on the CPU runner, from the same memory, and the two are compared.

    Attributes:
        allowed: greatest distance of floats; 0: equal bit by bit.
        compared: elements that were.
    """

    allowed: float = 0
    compared: int = 0
    cpu: CpuDevice = field(default_factory=lambda: CpuDevice(Mode.FAST, Order.FORWARD))

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        if not blocks:
            return
        arrays = [as_array(a) for a in arguments]
        copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
        self.execute(op, expression, blocks, copies)
        self.cpu.launch(op, expression, blocks, arguments, device)
        for copy, array in zip(copies, arrays, strict=True):
            if isinstance(array, np.ndarray):
                self.compared += array.size
                assert_same(copy, array, self.allowed)


def assert_same(ptx: NDArray[Any], cpu: NDArray[Any], allowed: float) -> None:
    """Equal bit by bit; or, floats, within an absolute distance, with NaN and infinities at the same places."""
    if not allowed or ptx.dtype.kind != "f":
        np.testing.assert_array_equal(ptx.reshape(-1).view(np.uint8), cpu.reshape(-1).view(np.uint8))
    else:
        np.testing.assert_allclose(ptx, cpu, rtol=0, atol=allowed)


@contextmanager
def ptx_device(device: PtxDevice) -> Iterator[PtxDevice]:
    """Ops launch on this device, and what they allocate starts as NaN or as the greatest integer."""
    with poisoned_allocations(), launching_by(device.launch):
        yield device
