"""Charges: what one more bucket costs, in the unit of the row cost, so that the number of buckets can be chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.errors import EdgesError


def charge_of_capture(capture_s: float, slots_per_s: float, *, epochs: float = 1) -> float:
    """What one more shape costs in slots an epoch, by the time to capture (or compile) it.

    Args:
        capture_s: seconds for one CUDA graph or one compilation.
        slots_per_s: padded slots that the device computes in a second.
        epochs: over how many epochs the graph is used.

    Returns:
        The slots that the device would compute meanwhile, spread over the epochs: a shape must save more than that.
    """
    return (
        checked_number("capture_s", capture_s)
        * checked_number("slots_per_s", slots_per_s)
        / _positive("epochs", epochs)
    )


def charge_of_memory(graph_bytes: float, device_bytes: float, slots_per_epoch: float) -> float:
    """What one more shape costs in slots an epoch, by the memory that its CUDA graph holds.

    Memory and work are traded at par: a graph that holds 1 % of the device must save more than 1 % of the slots.

    Args:
        graph_bytes: held by one captured graph.
        device_bytes: of the device, or what is free for graphs.
        slots_per_epoch: padded slots of an epoch, such as ``optimal_edges(...).cost``.
    """
    share = checked_number("graph_bytes", graph_bytes) / _positive("device_bytes", device_bytes)
    return share * checked_number("slots_per_epoch", slots_per_epoch)


def _positive(name: str, value: float) -> float:
    if not checked_number(name, value):
        raise EdgesError(f"{name} must be above 0: got {value!r}.")
    return value


def checked_number(name: str, value: Any) -> int | float:
    """Return a cost, a charge or a measure as a plain int or float: finite, 0 or more."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise EdgesError(f"{name} must be a number: got {value!r} ({type(value).__name__}).")
    if not 0 <= number < float("inf"):  # NaN too
        raise EdgesError(f"{name} must be a finite number of 0 or more: got {number!r}.")
    return number
