"""A CUDA device that is not there: the host code of an op runs the PTX that NVRTC made, in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from labkit.gpu.arguments import Argument, parameters_of
from labkit.gpu.ptx.parse import Kernel
from labkit.gpu.ptx.runner import run
from labkit.gpu.regimes import BLOCK
from labkit.gpu.verify.stand_in import memory_of


class PtxDevice:
    """Runs what is launched at once.

    Args:
        kernel_of: the PTX of a name expression.
        text: the source, for the types of the parameters.

    Attributes:
        launched: name expressions.
    """

    def __init__(self, kernel_of: Callable[[str], Kernel], text: str) -> None:
        self._kernel_of, self._text = kernel_of, text
        self.launched: set[str] = set()

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        """Launch a kernel, as ``labkit.gpu.launch.launch``.

        Raises:
            PtxError: the PTX does what a GPU would not survive, or leave undefined.
        """
        if blocks:
            parameters = parameters_of(self._text, expression)
            arrays = [memory_of(argument, p.base) for argument, p in zip(arguments, parameters, strict=True)]
            self.launched.add(expression)
            run(self._kernel_of(expression), (blocks,), (BLOCK,), arrays)
