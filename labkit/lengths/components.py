"""The shapes that generated lengths are mixed from: frozen, typed, each drawing from a generator that it is given."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LengthsError
from labkit.lengths.validate import MAX_LENGTH
from labkit.units import shown


class Component(Protocol):
    """One part of a mixture: a weight and a way to draw lengths."""

    @property
    def weight(self) -> float:
        """Relative to the other parts; 70 and 30 mean the same as 0.7 and 0.3."""

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        """``size`` independent lengths."""


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """Whole part of a Pareto variable bounded to [min_length, max_length + 1).

    With s = alpha - 1, m = min_length, M = max_length the tail is exact and closed, for every m <= k <= M + 1:

        P(length >= k) = (k**-s - (M + 1)**-s) / (m**-s - (M + 1)**-s)

    so P(length = k) falls as k**-alpha. Chosen over the zeta law P(k) ~ k**-alpha because that one needs a table as
    long as ``max_length``; the two differ by O(1/k), visibly only for the first few lengths.

    Attributes:
        alpha: exponent of the density, above 1 (finite); real logs lie between 1.5 and 3.
        max_length: the longest length that can come out.
        min_length: the shortest one, at least 1.
        weight: share of the mixture, relative to the other parts.

    Source: Clauset, Shalizi, Newman, "Power-law distributions in empirical data", SIAM Review 51 (2009), section 2
    and appendix D (inverse transform), with the upper bound added.
    """

    alpha: float
    max_length: int
    min_length: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an exponent that has no bounded inverse here, and bounds that are out of order."""
        if not (math.isfinite(self.alpha) and self.alpha > 1):
            raise LengthsError(
                f"alpha must be a finite number above 1: got {self.alpha}. Real logs lie between 1.5 and 3."
            )
        _check_bounds(self.min_length, self.max_length)
        check_weight(self.weight)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        """Inverse of the closed tail, in logarithms, so that no power can overflow whatever alpha and max_length."""
        s = self.alpha - 1.0
        end = float(self.max_length) + 1.0
        x = rng.random(size)
        x *= math.expm1(s * math.log(self.min_length / end))  # in (-1, 0]
        np.log1p(x, out=x)
        x /= -s
        np.exp(x, out=x)
        x *= self.min_length
        # rounding may step over either bound by one unit in the last place
        np.clip(x, self.min_length, self.max_length, out=x)
        return x.astype(np.int32)  # truncates, which is floor here


@dataclass(frozen=True, kw_only=True)
class Lognormal:
    """A lognormal variable rounded to the nearest integer; what lies outside the bounds is set to the bound.

    For min_length <= k < max_length: P(length <= k) = Phi(ln((k + 1/2) / median) / sigma). The clipped tail is a spike
    at ``max_length``, as in logs that were cut at a cap.

    Attributes:
        median: above 0.
        sigma: standard deviation of the logarithm, 0 or more.
        max_length: the longest length that can come out.
        min_length: the shortest one, at least 1.
        weight: share of the mixture, relative to the other parts.
    """

    median: float
    sigma: float
    max_length: int
    min_length: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse parameters that give no lengths."""
        if not (math.isfinite(self.median) and self.median > 0):
            raise LengthsError(f"median must be a finite number above 0: got {self.median}.")
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise LengthsError(f"sigma must be a finite number, 0 or more: got {self.sigma}.")
        _check_bounds(self.min_length, self.max_length)
        check_weight(self.weight)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        """Exponential of normal numbers; the exponent is bounded first, so that it cannot overflow."""
        x = rng.standard_normal(size)
        x *= self.sigma
        x += math.log(self.median)
        np.minimum(x, math.log(self.max_length) + 1.0, out=x)
        np.exp(x, out=x)
        np.rint(x, out=x)
        np.clip(x, self.min_length, self.max_length, out=x)
        return x.astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class Constant:
    """Every sequence has the same length: 0 for users without events, the cap for those who were cut.

    Attributes:
        length: 0 or more.
        weight: share of the mixture, relative to the other parts.
    """

    length: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a length outside 0 .. 2**31 - 1."""
        whole("length", self.length, 0)
        check_weight(self.weight)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        """No random number is used."""
        return np.full(size, self.length, dtype=np.int32)


def whole(name: str, value: Any, low: int, high: int = MAX_LENGTH) -> int:
    """Return ``value`` as an int within ``low .. high``.

    Raises:
        LengthsError: not an integer (bool and 5.0 are none), or outside; the message has the name and the value.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise LengthsError(f"{name} must be a whole number: got {shown(value)}.") from None
    if isinstance(value, bool) or not low <= number <= high:
        raise LengthsError(f"{name} must be a whole number within {low} .. {high}: got {shown(value)}.")
    return number


def check_weight(weight: float, name: str = "weight") -> None:
    """Refuse a weight that is negative, NaN or infinite."""
    if not (math.isfinite(weight) and weight >= 0):
        raise LengthsError(f"{name} must be a finite number, 0 or more: got {weight}.")


def _check_bounds(min_length: int, max_length: int) -> None:
    whole("min_length", min_length, 1)
    whole("max_length", max_length, 1)
    if max_length < min_length:
        raise LengthsError(f"max_length must be min_length or more: got {max_length} < {min_length}.")
