"""A device that runs each launch from its PTX and on the CPU runner, from the same memory, and compares the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labkit.gpu.arguments import Argument, parameters_of
from labkit.gpu.ptx.parse import Kernel
from labkit.gpu.ptx.runner import run
from labkit.gpu.regimes import BLOCK
from labkit.gpu.verify.stand_in import CpuDevice, memory_of

#: Units in the last place of the greatest value of an array, where a kernel calls expf: CUDA's is within 2 (CUDA C++
#: Programming Guide, "Mathematical Functions"), glibc's within 1, and one more for products fused with sums.
EXP_ULPS = 4


class BothRunners:
    """Launches on both.

    Args:
        cpu: the CPU runner.
        kernel_of: the PTX of a name expression.
        text: the source, for the types of the parameters.
        ulps: greatest distance of floats in units in the last place of the greatest value of the array; 0: equal bits.

    Attributes:
        compared: elements that were.
        differences: in words, of each launch in which the two differ.
    """

    def __init__(self, cpu: CpuDevice, kernel_of: Callable[[str], Kernel], text: str, ulps: float = 0) -> None:
        self.cpu, self._kernel_of, self._text, self._ulps = cpu, kernel_of, text, ulps
        self.compared = 0
        self.differences: list[str] = []

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        """Launch a kernel, as ``labkit.gpu.launch.launch``.

        Raises:
            PtxError: the PTX does what a GPU would not survive, or leave undefined.
        """
        if not blocks:
            return
        parameters = parameters_of(self._text, expression)
        arrays = [memory_of(argument, p.base) for argument, p in zip(arguments, parameters, strict=True)]
        copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
        run(self._kernel_of(expression), (blocks,), (BLOCK,), copies)
        self.cpu.launch(op, expression, blocks, arguments, device)
        for parameter, of_ptx, of_cpu in zip(parameters, copies, arrays, strict=True):
            if isinstance(of_cpu, np.ndarray):
                self.compared += of_cpu.size
                difference = different(of_ptx, of_cpu, self._ulps)
                if difference:
                    self.differences.append(f"{expression}, {parameter.name}: {difference}")


def different(ptx: NDArray[Any], cpu: NDArray[Any], ulps: float) -> str | None:
    """How two arrays differ, in words; None: equal bits, or floats within so many units in the last place."""
    if not ulps or ptx.dtype.kind != "f":
        wrong = (ptx.reshape(-1).view(np.uint8) != cpu.reshape(-1).view(np.uint8)).reshape(ptx.size, -1).any(1)
    else:
        finite = np.isfinite(ptx) & np.isfinite(cpu)
        unit = np.finfo(ptx.dtype).eps * np.abs(cpu[finite]).max(initial=0)
        with np.errstate(invalid="ignore"):  # infinities are compared as they are
            near = np.abs(ptx - cpu) <= ulps * unit
        same = np.where(finite, near, (ptx == cpu) | _nan(ptx, cpu))
        wrong = ~same.reshape(-1)
    if not wrong.any():
        return None
    first = int(np.argmax(wrong))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first number {first}: {ptx.reshape(-1)[first]!r} by the "
        f"compiled program, {cpu.reshape(-1)[first]!r} on the CPU"
    )


def _nan(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    both: NDArray[np.bool_] = np.isnan(a) & np.isnan(b)
    return both
