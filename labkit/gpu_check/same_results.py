"""Whether ways of doing the same give the same: what is timed is compared first."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from labkit.gpu_check.items.op_calls import OpCalls
from labkit.gpu_check.lab import Lab

#: Of the number itself and of the root mean square of all: sums of 4096 float32 in any order.
_CLOSE = 1e-3

#: One in so many may differ: where two events of a row are its maximum, others may have another one of them.
_TIES = 10**6


def compare(lab: Lab, calls: OpCalls) -> list[str]:
    """Run an op and its peers once.

    Returns:
        Names of the peers whose first result has the shape of the op's, and equals it. What torch cannot do, and
        what it gives in another shape, is not among them.

    Raises:
        AssertionError: one gave something else.
    """
    own, alike = _first(calls.own()), []
    peers = {name: (lambda call=call: call) for name, call in calls.peers.items()}
    for name, make in (peers | calls.padded).items():
        try:
            other = _first(make()())
        except (RuntimeError, NotImplementedError):  # its timing has the reason
            if not lab.is_alive():
                raise
            continue
        if other.shape == own.shape:
            _assert_same(name, own, other)
            alike.append(name)
    return alike


def _first(result: Any) -> Tensor:
    found: Tensor = result[0] if isinstance(result, tuple | list) else result
    return found.detach()


def _assert_same(name: str, own: Tensor, other: Tensor) -> None:
    allowed = _CLOSE * (other.abs() + other.double().square().mean().sqrt().to(other.dtype))
    wrong = ~((own - other).abs() <= allowed)
    count = int(wrong.sum())
    if count > own.numel() // _TIES:
        at = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(
            f"{count} of {own.numel()} differ from {name!r}, first at {at}: {float(own[at]):.7g}, "
            f"not {float(other[at]):.7g}"
        )
