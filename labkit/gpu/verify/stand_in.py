"""A CUDA device that is not there: the host code of an op launches on the CPU runner in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.arguments import UNIT_BYTES, Argument, check_arguments, parameters_of
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.program import Order, Program
from labkit.gpu.host.reports import HostRun, ReportKind
from labkit.gpu.launch import launching_by
from labkit.gpu.regimes import BLOCK
from labkit.gpu.sources import kernel_text
from labkit.gpu.verify.far import far_memory, first_block

#: The program that has a kernel: of an op and a name expression.
Programs = Callable[[str, str], Program]

#: After these the memory holds nothing that could be compared.
_FATAL = {ReportKind.CRASH, ReportKind.TIMEOUT, ReportKind.ADDRESS, ReportKind.DEADLOCK}


class LaunchEnded(Exception):  # noqa: N818 - not an error of this program: the kernel under trial did not end
    """A launch ended before its last block; its reports say why."""


class CpuDevice:
    """Runs what is launched at once, and keeps the outcome of each launch.

    Args:
        programs: finds the program of a kernel.
        order: of the threads.
        timeout_s: of a launch.
        sources: text of an op's source where it is not the shipped one; arguments are checked against it.

    Attributes:
        launched: name expression and outcome of each launch.
    """

    def __init__(
        self,
        programs: Programs,
        order: Order = Order.FORWARD,
        *,
        timeout_s: float = 60.0,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self._programs, self._order, self._timeout_s = programs, order, timeout_s
        self._sources = dict(sources or {})
        self.launched: list[tuple[str, HostRun]] = []
        self._kept: dict[Path, dict[str, bytes]] = {}  # by program: as a module on a GPU keeps its variables

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        """Launch a kernel, as ``labkit.gpu.launch.launch``.

        Raises:
            LaunchEnded: it crashed, hung or was ended by what it did.
            KernelArgumentError: an argument that the kernel would misread.
        """
        if not blocks:
            return
        text = self._sources.get(op) or kernel_text(KERNELS[op].path)
        parameters = parameters_of(text, expression)
        check_arguments(expression, parameters, arguments, device)
        program = self._programs(op, expression)
        run = program.launch(
            expression,
            (blocks,),
            (BLOCK,),
            [memory_of(argument, parameter.base) for argument, parameter in zip(arguments, parameters, strict=True)],
            order=self._order,
            seed=7,
            timeout_s=self._timeout_s,
            first_block=first_block(blocks),
            kept=self._kept.setdefault(program.path, {}),
        )
        self.launched.append((expression, run))
        if not run.completed or any(report.kind in _FATAL for report in run.reports):
            raise LaunchEnded(expression)


def memory_of(argument: Argument, base: str = "") -> Any:
    """The memory of a tensor as NumPy sees it, bfloat16 as its bits; other arguments as they are.

    Where the kernel's type ``base`` is a unit of bytes, it is seen as numbers of that size, of 4 bytes for vectors.
    Far memory is passed as it is, and not copied.
    """
    if not isinstance(argument, Tensor):
        return argument
    far = far_memory(argument)
    if far is not None:
        return far.viewed(f"u{min(UNIT_BYTES[base], 4)}") if base in UNIT_BYTES else far
    if base in UNIT_BYTES:
        return argument.view(-1).numpy().view(f"u{min(UNIT_BYTES[base], 4)}")
    if argument.dtype is torch.bfloat16:
        return argument.view(torch.int16).numpy().view(np.uint16)
    return argument.numpy()


@contextmanager
def poisoned_allocations() -> Iterator[None]:
    """What torch allocates starts as NaN or as the greatest integer, so that what a kernel forgets to write shows."""
    before, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)  # torch.utils.deterministic.fill_uninitialized_memory is on by default
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)


@contextmanager
def standing_in(device: CpuDevice) -> Iterator[None]:
    """Ops launch on ``device``, in memory that is poisoned."""
    with poisoned_allocations(), launching_by(device.launch):
        yield
