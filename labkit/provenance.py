"""Where a number comes from: every figure on the screen and in the JSON carries one of these origins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """How a figure came to be."""

    EXACT = "exact"  # arithmetic on lengths
    MODELLED = "modelled"  # an expectation, a bound or a cost model; Figure.reason says which
    MEASURED = "measured"  # this device, now
    RECORDED = "recorded"  # a stored run: device, date, commit


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its unit and origin.

    A number that does not exist is ``value=None`` with a reason, never 0.

    Attributes:
        value: the number in SI base units, or None.
        unit: ``"1"`` for ratios and counts, else ``"bytes"``, ``"s"``, ``"slots"``, ``"events"`` and so on.
        origin: how it came to be; None only where there is no value.
        reason: why there is no value, or what kind of model made it.
    """

    value: int | float | None
    unit: str
    origin: Origin | None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse a figure without an origin, one that is no number, and a missing one without a reason."""
        if self.value is None and not self.reason:
            raise ValueError(f"a figure without a value needs a reason (unit {self.unit!r})")
        # an integer is finite, and may be too large for the float that isfinite makes of it
        if self.value is not None and not isinstance(self.value, int) and not math.isfinite(self.value):
            raise ValueError(
                f"a figure that is {self.value} does not exist: use None with a reason (unit {self.unit!r})"
            )
        if self.value is not None and self.origin is None:
            raise ValueError(
                f"a figure with a value needs an origin (value {self.value!r}, unit {self.unit!r}): "
                f"use one of {', '.join(Origin)}"
            )
