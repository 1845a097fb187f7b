"""Launches of the trials carried to the device: tensors go there, the kernel runs, what it wrote comes back.

So the trials that prove a kernel without a GPU, with their references and bounds, are the trials on one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labkit.gpu.arguments import Argument, parameters_of
from labkit.gpu.catalog import KERNELS
from labkit.gpu.launch import Launcher, launch, launching_by
from labkit.gpu.sources import kernel_text


class ThereAndBack:
    """Launches on a device what is given as tensors of the host.

    Args:
        device: where kernels run.
        launcher: launches there; None: ``labkit.gpu.launch``.

    Attributes:
        launched: name expressions, in order.
    """

    def __init__(self, device: torch.device, launcher: Launcher | None = None) -> None:
        self._device, self._launcher = device, launcher or _launch_itself
        self.launched: list[str] = []

    def launch(
        self, op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device
    ) -> None:
        """Launch a kernel; as ``labkit.gpu.launch.launch``, whose errors it raises. ``device`` is the host."""
        if not blocks:
            return
        parameters = parameters_of(kernel_text(KERNELS[op].path), expression)
        there = {id(a): a.to(self._device, copy=True) for a in arguments if isinstance(a, Tensor)}
        moved = [there[id(a)] if isinstance(a, Tensor) else a for a in arguments]
        self._launcher(op, expression, blocks, moved, self._device)
        for argument, parameter in zip(arguments, parameters, strict=True):
            if isinstance(argument, Tensor) and not parameter.constant:
                argument.copy_(there[id(argument)])
        self.launched.append(expression)


def _launch_itself(op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device) -> None:
    """The real launch, from inside of a context in which launches are carried here."""
    with launching_by(None):
        launch(op, expression, blocks, arguments, device)
