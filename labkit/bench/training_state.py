"""What a training step changes, and the rules that an optimizer must keep to be captured in a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from labkit.errors import DeviceError


def training_state(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None = None
) -> Callable[[], dict[Hashable, Tensor]]:
    """A call that names all tensors that a step changes: parameters, buffers, and the optimizer's state so far.

    State that an optimizer makes at its first step must start at zero, as that of SGD, Adam, AdamW and RMSprop does.

    Args:
        model: that is trained.
        optimizer: of its parameters.
        scaler: of the loss; what it has on the device is made now.

    Raises:
        DeviceError: an NAdam, whose state does not.
    """
    if isinstance(optimizer, torch.optim.NAdam):
        raise DeviceError("the warm-up of a graph cannot be undone for NAdam, whose state starts at one: take AdamW.")
    scaling = {} if scaler is None or not scaler.is_enabled() else _of_scaler(scaler, optimizer)

    def named() -> dict[Hashable, Tensor]:
        found: dict[Hashable, Tensor] = {("model", name): tensor for name, tensor in model.named_parameters()}
        found |= {("buffer", name): tensor for name, tensor in model.named_buffers()}
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        found |= {
            ("optimizer", i, name): value
            for i, parameter in enumerate(parameters)
            for name, value in optimizer.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }
        return found | scaling

    return named


def _of_scaler(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer) -> dict[Hashable, Tensor]:
    """The factor of the loss and the steps since it grew, which torch makes at the first loss that is scaled."""
    scaler.scale(torch.zeros((), device=optimizer.param_groups[0]["params"][0].device))
    names = ("_scale", "_growth_tracker")  # there is no other way to them that does not read them on the host
    return {("scaler", name): getattr(scaler, name) for name in names}


def check_capturable(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer that counts its steps on the host.

    Raises:
        DeviceError: ``capturable`` is off though the parameters are on a CUDA device.
    """
    kind = type(optimizer).__name__
    for group in optimizer.param_groups:
        if group.get("capturable") is False and any(p.is_cuda for p in group["params"]):
            raise DeviceError(
                f"{kind} cannot be captured in a CUDA graph: expected capturable=True, got False; "
                f"build it as {kind}(parameters, capturable=True)."
            )
