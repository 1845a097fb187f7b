"""Integer and bit instructions on arrays, with the wrap-around, the clamps and the faults of PTX.

Source: PTX ISA 9.0, "Integer Arithmetic Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.gpu.ptx.fault import Fault

Array = NDArray[Any]

_WIDER: dict[Any, Any] = {
    np.dtype(np.int16): np.int32,
    np.dtype(np.uint16): np.uint32,
    np.dtype(np.int32): np.int64,
    np.dtype(np.uint32): np.uint64,
}


def bits_of(x: Array) -> int:
    """Width of the elements in bits."""
    return int(x.dtype.itemsize * 8)


def widened(x: Array, y: Array) -> Array:
    """The whole product in the next wider type (``mul.wide``)."""
    wide = _WIDER[x.dtype]
    return np.multiply(x, y, dtype=wide)


def high(x: Array, y: Array) -> Array:
    """The upper half of the product (``mul.hi``)."""
    if x.dtype in _WIDER:
        return np.asarray(widened(x, y) >> bits_of(x)).astype(x.dtype)
    a, b = np.asarray(x).astype(np.uint64), np.asarray(y).astype(np.uint64)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & mask)
    top = a1 * b1 + (middle >> half) + (other >> half)
    if x.dtype == np.int64:  # two's complement: take back what the sign bits added
        top = top - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return np.asarray(top).view(x.dtype)


def quotient(x: Array, y: Array) -> Array:
    """Integer division towards zero.

    Raises:
        Fault: a divisor is 0; the result would be undefined.
    """
    if np.any(y == 0):
        raise Fault("integer division by zero", lane=_first(np.broadcast_to(y == 0, np.broadcast(x, y).shape)))
    floor = np.asarray(np.floor_divide(x, y))
    if x.dtype.kind == "u":
        return floor
    return np.asarray(floor + ((floor * y != x) & ((x < 0) != (y < 0)))).astype(x.dtype)


def remainder(x: Array, y: Array) -> Array:
    """x - quotient(x, y) * y: the sign is that of x."""
    return np.asarray(x - quotient(x, y) * y).astype(x.dtype)


def shifted_left(x: Array, amount: Array) -> Array:
    """x << amount, 0 from the width on (``shl``)."""
    width = bits_of(x)
    moved = np.asarray(x) << np.minimum(amount, width - 1).astype(x.dtype)
    return np.asarray(np.where(amount >= width, x.dtype.type(0), moved))


def shifted_right(x: Array, amount: Array) -> Array:
    """x >> amount, sign or 0 moves in; amounts are clamped to the width (``shr``)."""
    width = bits_of(x)
    moved = np.asarray(x) >> np.minimum(amount, width - 1).astype(x.dtype)
    return np.asarray(moved if x.dtype.kind == "i" else np.where(amount >= width, x.dtype.type(0), moved))


def funnel(low: Array, top: Array, amount: Array, *, left: bool, wrap: bool) -> Array:
    """32 bits out of the 64 of ``top:low``, shifted (``shf``)."""
    by = (amount & np.uint32(31)) if wrap else np.minimum(amount, np.uint32(32))
    both = (np.asarray(top).astype(np.uint64) << np.uint64(32)) | np.asarray(low).astype(np.uint64)
    by = by.astype(np.uint64)
    return ((both << by) >> np.uint64(32) if left else both >> by).astype(np.uint32)


def looked_up(a: Array, b: Array, c: Array, table: int) -> Array:
    """The bitwise function of three inputs whose truth table is ``table`` (``lop3``)."""
    result = np.asarray(np.uint32(0))
    for row in range(8):
        if table >> row & 1:
            x, y, z = (v if row & bit else ~v for v, bit in ((a, 4), (b, 2), (c, 1)))
            result = np.asarray(result | (x & y & z))
    return result


def permuted(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes picked from the eight of ``b:a``; bit 3 of a choice spreads the sign (``prmt``)."""
    both = (np.asarray(b).astype(np.uint64) << np.uint64(32)) | np.asarray(a).astype(np.uint64)
    result = np.asarray(np.uint64(0))
    for place in range(4):
        choice = (np.asarray(selector) >> np.uint32(4 * place)).astype(np.uint64) & np.uint64(15)
        byte = (both >> ((choice & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        sign = np.where(byte >> np.uint64(7), np.uint64(0xFF), np.uint64(0))
        result = result | (np.where(choice & np.uint64(8), sign, byte) << np.uint64(8 * place))
    return result.astype(np.uint32)


def extracted(x: Array, position: Array, length: Array) -> Array:
    """``length`` bits from ``position`` on, sign-extended for signed types (``bfe``)."""
    width = bits_of(x)
    unsigned = np.uint32 if width == 32 else np.uint64
    start, size = (np.minimum(v & np.uint32(255), width).astype(unsigned) for v in (position, length))
    value = shifted_right(np.asarray(x).astype(unsigned), start)
    end = np.minimum(start + size, unsigned(width))
    field = value & _ones(size, width)
    if x.dtype.kind == "u":
        return field
    # the sign is the last bit of the field, or of x where the field reaches beyond it
    sign = (np.asarray(x).astype(unsigned) >> np.minimum(end - unsigned(1), unsigned(width - 1))) & unsigned(1)
    filled = field | np.where(sign.astype(bool), ~_ones(end - start, width), unsigned(0))
    return np.where(size == 0, unsigned(0), filled).astype(x.dtype)


def inserted(source: Array, into: Array, position: Array, length: Array) -> Array:
    """``into`` with its ``length`` bits from ``position`` on taken from ``source`` (``bfi``)."""
    width = bits_of(into)
    unsigned = into.dtype.type
    start, size = ((v & np.uint32(255)).astype(np.uint32) for v in (position, length))
    mask = shifted_left(_ones(np.minimum(size, width).astype(unsigned), width), start)
    return (into & ~mask) | (shifted_left(np.asarray(source), start) & mask)


def _ones(count: Array, width: int) -> Array:
    """That many low bits set."""
    unsigned = np.uint32 if width == 32 else np.uint64
    counts = np.asarray(count, unsigned)
    return ~shifted_left(np.full(counts.shape, ~unsigned(0)), counts)


def leading_zeros(x: Array) -> Array:
    """Zero bits above the highest one (``clz``)."""
    width = bits_of(x)
    rest, count = np.array(x), np.full(np.shape(x), width, np.uint32)
    while (alive := rest != 0).any():
        count = count - alive.astype(np.uint32)
        rest = rest >> rest.dtype.type(1)
    return count


def population(x: Array) -> Array:
    """Bits that are set (``popc``)."""
    return np.bitwise_count(x).astype(np.uint32)


def reversed_bits(x: Array) -> Array:
    """Bit 0 becomes the highest (``brev``)."""
    result = np.zeros_like(x)
    for place in range(bits_of(x)):
        bit = (x >> x.dtype.type(place)) & x.dtype.type(1)
        result = result | (bit << x.dtype.type(bits_of(x) - 1 - place))
    return result


def _first(mask: Array) -> int:
    return int(np.flatnonzero(mask)[0]) if mask.shape else 0
