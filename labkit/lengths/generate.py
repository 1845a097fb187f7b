"""Generated lengths: power law, lognormal and mixtures, deterministic for a seed, always with an explicit maximum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LengthsError
from labkit.lengths.components import Component, Constant, Lognormal, PowerLaw, whole

__all__ = ["Component", "Constant", "Lognormal", "PowerLaw", "lognormal", "mixture", "power_law"]

#: Lengths drawn together: small enough that the float64 temporaries stay in cache. Part of what a seed means.
_CHUNK = 1 << 16

_MAX_SEQUENCES = 2**40


def power_law(
    n: int,
    *,
    alpha: float,
    max_length: int,
    min_length: int = 1,
    zero_share: float = 0.0,
    cap_share: float = 0.0,
    seed: int = 0,
) -> NDArray[np.int32]:
    """Draw lengths from a bounded power law: most are short, a few are long, none is above ``max_length``.

    Args:
        n: sequences to draw, at least 1.
        alpha: exponent of the density, above 1.
        max_length: the longest length, up to 2**31 - 1.
        min_length: the shortest length of a sequence that has events, at least 1.
        zero_share: expected share of sequences without events.
        cap_share: expected share of sequences at exactly ``max_length``, on top of those that the law puts there: the
            spike left by a log that was cut.
        seed: the same seed gives the same array.

    Returns:
        (n,) int32, independent draws, unordered.

    Raises:
        LengthsError: n < 1, alpha <= 1, min_length < 1, max_length < min_length, a share outside 0 .. 1, or shares
            whose sum is above 1.

    Cost: O(n); beside the result a few chunks of 65 536 numbers.
    Source: see ``PowerLaw`` for the law and its closed tail.
    """
    rest = _rest_share(zero_share=zero_share, cap_share=cap_share)
    return mixture(
        n,
        parts=[
            Constant(length=0, weight=zero_share),
            PowerLaw(alpha=alpha, min_length=min_length, max_length=max_length, weight=rest),
            Constant(length=max_length, weight=cap_share),
        ],
        seed=seed,
    )


def lognormal(
    n: int,
    *,
    median: float,
    sigma: float,
    max_length: int,
    min_length: int = 1,
    zero_share: float = 0.0,
    seed: int = 0,
) -> NDArray[np.int32]:
    """Draw lengths from a rounded lognormal law, clipped to ``min_length .. max_length``.

    Args:
        n: sequences to draw, at least 1.
        median: of the law before rounding and clipping, above 0.
        sigma: standard deviation of the logarithm, 0 or more; 1 makes the 99th percentile 10 times the median.
        max_length: the longest length, up to 2**31 - 1; what would be longer is set to it.
        min_length: the shortest length of a sequence that has events, at least 1.
        zero_share: expected share of sequences without events.
        seed: the same seed gives the same array.

    Returns:
        (n,) int32, independent draws, unordered.

    Raises:
        LengthsError: n < 1, median <= 0, sigma < 0, max_length < min_length, or a share outside 0 .. 1.

    Cost: O(n); beside the result a few chunks of 65 536 numbers.
    """
    rest = _rest_share(zero_share=zero_share)
    return mixture(
        n,
        parts=[
            Constant(length=0, weight=zero_share),
            Lognormal(median=median, sigma=sigma, min_length=min_length, max_length=max_length, weight=rest),
        ],
        seed=seed,
    )


def mixture(n: int, *, parts: Sequence[Component], seed: int = 0) -> NDArray[np.int32]:
    """Draw each length from one of several laws, chosen with a probability proportional to its weight.

        mixture(n, parts=[Lognormal(weight=70, median=8, sigma=1, max_length=512), Constant(weight=30, length=512)])

    Args:
        n: sequences to draw, at least 1.
        parts: ``PowerLaw``, ``Lognormal``, ``Constant``, or anything with a ``weight`` and a ``draw``.
        seed: the same seed and parts give the same array.

    Returns:
        (n,) int32, independent draws, unordered.

    Raises:
        LengthsError: n < 1, no parts, weights that sum to 0, or a negative seed.

    Cost: O(n len(parts)); beside the result a few chunks of 65 536 numbers.
    """
    n = whole("n", n, 1, _MAX_SEQUENCES)
    rng = np.random.default_rng(whole("seed", seed, 0, 2**128 - 1))
    used = [part for part in parts if part.weight > 0]
    if not used:
        raise LengthsError(f"a mixture needs a part with a weight above 0: got {len(parts)} parts.")
    weights = np.array([part.weight for part in used], dtype=np.float64)
    # scaled by the largest first, so that the sum cannot overflow
    bounds = np.cumsum(weights / weights.max())
    bounds /= bounds[-1]
    lengths = np.empty(n, dtype=np.int32)
    for start in range(0, n, _CHUNK):
        chunk = lengths[start : start + _CHUNK]
        if len(used) == 1:
            chunk[:] = used[0].draw(rng, chunk.size)
            continue
        choice = np.searchsorted(bounds, rng.random(chunk.size), side="right")
        for index, part in enumerate(used):
            at = np.flatnonzero(choice == index)
            chunk[at] = part.draw(rng, at.size)
    return lengths


def _rest_share(**shares: float) -> float:
    """What is left of 1 for the law itself, after the shares of constant lengths."""
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise LengthsError(f"{name} must lie within 0 .. 1: got {share}.")
    total = sum(shares.values())
    if total > 1:
        raise LengthsError(f"{' + '.join(shares)} must not exceed 1: got {total:g}.")
    return 1 - total
