"""``cvt``: between integers and floats of any width, with the clamps and NaN rules of PTX.

Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: cvt".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError
from labkit.gpu.ptx import rounding
from labkit.gpu.ptx.arithmetic import Operation
from labkit.gpu.ptx.opcode import DTYPES, Opcode

Array = NDArray[Any]

_FLOATS = {"f16", "bf16", "f32", "f64"}
_TO_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def conversion(opcode: Opcode) -> Operation:
    """What a ``cvt`` does.

    Raises:
        PtxError: a pair of types or a modifier that is not known.
    """
    to, source = opcode.types[0], opcode.types[-1]
    known = {"rn", "ftz", "sat", *_TO_INTEGRAL, *(["rz"] if (to, source) == ("f16", "f32") else [])}
    unknown = [m for m in opcode.modifiers if m not in known]
    if unknown:
        raise PtxError(f"modifier .{unknown[0]} of {opcode} is unknown to the PTX runner")
    if to in ("f16x2", "bf16x2"):
        narrow = _to_float("f16" if to == "f16x2" else "bf16")
        return Operation((source, source), to, lambda high, low: _pair(narrow(high), narrow(low)))
    if to in _FLOATS and source in _FLOATS:
        return Operation((source,), to, _between_floats(opcode, to, source))
    if to in _FLOATS:
        if opcode.has("sat"):
            raise PtxError(f"modifier .sat of {opcode} is unknown to the PTX runner")
        return Operation((source,), to, _to_float(to))
    if source in _FLOATS:
        return Operation((source,), to, _float_to_integer(opcode, to, source))
    if opcode.has("sat"):
        info = _range(to)
        return Operation((source,), to, lambda x: _clamped(x, info).astype(DTYPES[to]))
    return Operation((source,), to, lambda x: np.asarray(x).astype(DTYPES[to]))


def _to_float(to: str) -> Callable[[Array], Array]:
    if to == "bf16":
        return lambda x: rounding.bfloat16_bits(np.asarray(x).astype(np.float32))
    return lambda x: np.asarray(x).astype(DTYPES[to])


def _half_toward_zero(x: Array) -> Array:
    """float16, cut and not rounded: what is finite never becomes infinite."""
    with np.errstate(over="ignore"):
        near = x.astype(np.float16)
    too_far = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))
    return np.where(too_far, np.nextafter(near, np.float16(0)), near)


def _pair(high: Array, low: Array) -> Array:
    bits = [np.asarray(half).view(np.uint16).astype(np.uint32) for half in (high, low)]
    return (bits[0] << np.uint32(16)) | bits[1]


def _between_floats(opcode: Opcode, to: str, source: str) -> Callable[[Array], Array]:
    integral = next((_TO_INTEGRAL[m] for m in opcode.modifiers if m in _TO_INTEGRAL), None)
    flush, saturate = opcode.has("ftz"), opcode.has("sat")
    narrow = _half_toward_zero if opcode.has("rz") else _to_float(to)

    def convert(x: Array) -> Array:
        value = rounding.from_bfloat16_bits(x) if source == "bf16" else np.asarray(x)
        value = rounding.flushed(value) if flush else value
        value = integral(value) if integral else value
        value = narrow(value) if to != source else value
        value = rounding.flushed(value) if flush else value
        return rounding.saturated(value) if saturate else value

    return convert


def _float_to_integer(opcode: Opcode, to: str, source: str) -> Callable[[Array], Array]:
    """Rounded, then clamped to the range of the integer; NaN gives 0, or the highest bit alone from or to 64 bits."""
    integral = next((_TO_INTEGRAL[m] for m in opcode.modifiers if m in _TO_INTEGRAL), None)
    if integral is None:
        raise PtxError(f"{opcode} says no rounding to an integer (.rni, .rzi, .rmi, .rpi)")
    dtype: Any = DTYPES[to]
    info = _range(to)
    flush = opcode.has("ftz")
    wide = source == "f64" or to in ("s64", "u64")
    of_nan = np.array(1 << (info.bits - 1), np.uint64).astype(f"u{info.bits // 8}").view(dtype) if wide else dtype(0)

    def convert(x: Array) -> Array:
        value = rounding.from_bfloat16_bits(x) if source == "bf16" else np.asarray(x)
        whole = integral((rounding.flushed(value) if flush else value).astype(np.float64))
        above, below, no_number = whole >= float(info.max), whole <= float(info.min), np.isnan(whole)
        inside = np.where(above | below | no_number, 0, whole).astype(dtype)
        clamped = np.where(above, dtype(info.max), np.where(below, dtype(info.min), inside))
        return np.where(no_number, of_nan, clamped)

    return convert


def _range(kind: str) -> np.iinfo[Any]:
    dtype: Any = DTYPES[kind]
    return np.iinfo(dtype)


def _clamped(x: Array, info: np.iinfo[Any]) -> Array:
    """Integers clamped to the range of another type; compared as Python integers' range allows."""
    own = np.iinfo(x.dtype)
    low, high = max(int(own.min), int(info.min)), min(int(own.max), int(info.max))
    return np.clip(x, x.dtype.type(low), x.dtype.type(high))
