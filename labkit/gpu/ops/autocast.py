"""What ``torch.autocast`` does with an op of several float tensors: it takes them all in the widest type among them."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.library import Library

#: Kept for as long as the process lives: with it would go what has been registered.
_LIBRARY = Library("labkit", "FRAGMENT")  # type: ignore[no-untyped-call]


def promotes_in_autocast(op: Any) -> None:
    """Let an op, under autocast, convert its float tensors to the widest type among them, as ``torch.cat`` does.

    Layers under autocast return 16 bits, parameters stay float32: so scores meet values of another type. Nothing is
    rounded, and each gradient has the type of what was given. Without autocast two types stay an error.
    """
    overload = getattr(torch.ops.labkit, op._name).default
    for device, key in (("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")):
        _LIBRARY.impl(op._name, _promoted(overload, device), key)  # type: ignore[no-untyped-call]


def _promoted(overload: Any, device: str) -> Any:
    def call(*arguments: Any) -> Any:
        floats = [a.dtype for a in arguments if isinstance(a, Tensor) and a.is_floating_point()]
        widest = reduce(torch.promote_types, floats)
        with torch.autocast(device, enabled=False):
            return overload(
                *(a.to(widest) if isinstance(a, Tensor) and a.is_floating_point() else a for a in arguments)
            )

    return call
