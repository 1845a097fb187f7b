"""What a training step changes, and the rules that an optimizer must keep to be captured in a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import torch
from torch import Tensor

from labkit.errors import DeviceError

B = TypeVar("B")


def training_state(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[], dict[Hashable, Tensor]]:
    """A call that names all tensors that a step changes: parameters, buffers, and the optimizer's state so far.

    State that an optimizer makes at its first step must start at zero, as that of SGD, Adam, AdamW and RMSprop does.

    Raises:
        DeviceError: an NAdam, whose state does not.
    """
    if isinstance(optimizer, torch.optim.NAdam):
        raise DeviceError("the warm-up of a graph cannot be undone for NAdam, whose state starts at one: take AdamW.")

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
        return found

    return named


def training_step(loss: Callable[[B], Tensor], optimizer: torch.optim.Optimizer) -> Callable[[B], Tensor]:
    """A whole training step that can be captured: gradients anew, forward, backward, optimizer.

    Args:
        loss: of a batch, a scalar on the device.
        optimizer: of its parameters.

    Returns:
        A step that returns the loss, detached.

    Raises:
        DeviceError: see :func:`check_capturable`.
    """
    check_capturable(optimizer)

    def step(batch: B) -> Tensor:
        # None, not zero: the backward of a capture then allocates gradients in the graph's pool
        optimizer.zero_grad(set_to_none=True)
        value = loss(batch)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return value.detach()

    return step


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
