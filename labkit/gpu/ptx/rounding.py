"""Float arithmetic as the GPU rounds it, on arrays: flush to zero, fused multiply-add, directed rounding, bfloat16.

float32 is exact: NumPy's + - * / and sqrt are correctly rounded, and the fused multiply-add goes through float64 with
the sum rounded to odd, which makes the second rounding harmless.

Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
IEEE Transactions on Computers 57(4), 2008; PTX ISA 9.0, "Floating Point Instructions".
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SMALLEST_NORMAL = np.finfo(np.float32).tiny

#: modifier of rounding -> whether towards -inf, +inf, zero; None is to nearest even
DIRECTIONS = {"rn": None, "rm": "down", "rp": "up", "rz": "zero"}


def flushed(x: Array) -> Array:
    """float32 with subnormal numbers replaced by zeros of their sign (``.ftz``); other types as they are."""
    if x.dtype != np.float32:
        return x
    small = np.abs(x) < _SMALLEST_NORMAL
    return np.where(small, np.copysign(np.float32(0), x), x) if small.any() else x


def saturated(x: Array) -> Array:
    """Clamped to [0, 1], NaN to +0 (``.sat``)."""
    return np.where(np.isnan(x), x.dtype.type(0), np.clip(x, 0, 1)).astype(x.dtype)


def fused(x: Array, y: Array, z: Array, direction: str | None = None) -> Array:
    """x * y + z, rounded once."""
    return _fused_f64(x, y, z) if x.dtype == np.float64 else _fused_f32(x, y, z, direction)


def _fused_f32(x: Array, y: Array, z: Array, direction: str | None) -> Array:
    product = np.multiply(x, y, dtype=np.float64)  # exact: 24 + 24 bits
    addend = np.asarray(z, np.float64)
    total = product + addend
    bulge = total - product
    error = (product - (total - bulge)) + (addend - bulge)  # Knuth's two-sum: total + error is the exact sum
    odd = np.array(total)
    bits = odd.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    if inexact.any():
        bits += np.where(inexact, np.where((error > 0) == (total > 0), 1, -1), 0)
    return narrowed(odd, direction)


def narrowed(x: Array, direction: str | None) -> Array:
    """float64 to float32, to nearest even or in a direction."""
    near = np.asarray(x).astype(np.float32)
    if direction is None:
        return near
    back = near.astype(np.float64)
    above, below = back > x, back < x  # which way the rounding went
    towards = {"down": (above, -np.inf), "up": (below, np.inf)}
    if direction in towards:
        wrong, aim = towards[direction]
        return np.where(wrong, np.nextafter(near, np.float32(aim)), near)
    wrong = np.abs(back) > np.abs(x)
    return np.where(wrong, np.nextafter(near, np.float32(0)), near)


def _fused_f64(x: Array, y: Array, z: Array) -> Array:
    """Exact by fractions of integers, a lane at a time: float64 is rare in these kernels."""
    rough = np.asarray(x * y + z)
    lanes = np.broadcast_arrays(x, y, z)
    exact = [
        float(Fraction(a) * Fraction(b) + Fraction(c)) if np.isfinite(r) and (a * b != 0 or c != 0) else r
        for a, b, c, r in zip(*(lane.ravel().tolist() for lane in lanes), rough.ravel().tolist(), strict=True)
    ]
    return np.array(exact, np.float64).reshape(rough.shape)


def bfloat16_bits(x: Array) -> Array:
    """float32 to the bits of bfloat16, to nearest even; NaN becomes 0x7fff."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint64(16)
    return np.where(np.isnan(x), 0x7FFF, rounded).astype(np.uint16)


def from_bfloat16_bits(bits: Array) -> Array:
    """The float32 that bfloat16 bits stand for; exact."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def larger(x: Array, y: Array) -> Array:
    """The larger of two floats: a number beats NaN, +0 beats -0."""
    return _of_equals(np.fmax(x, y), x, y, np.bitwise_and)


def smaller(x: Array, y: Array) -> Array:
    """The smaller of two floats: a number beats NaN, -0 beats +0."""
    return _of_equals(np.fmin(x, y), x, y, np.bitwise_or)


def _of_equals(result: Array, x: Array, y: Array, combine: Any) -> Array:
    """Where x == y they differ at most in the sign of zero: combine their bits."""
    unsigned = np.uint32 if result.dtype == np.float32 else np.uint64
    bits = combine(np.asarray(x).view(unsigned), np.asarray(y).view(unsigned)).view(result.dtype)
    return np.where(x == y, bits, result)
