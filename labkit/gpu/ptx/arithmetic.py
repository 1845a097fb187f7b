"""The instructions that compute: each opcode as a function of arrays, with the types that it reads and makes.

Float32 results are those of the hardware to the last bit, with the exception of ``.approx`` and ``div.full``: their
result here is the exact one, correctly rounded; the hardware may be off by what ``APPROXIMATIONS`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError
from labkit.gpu.ptx import integers, rounding
from labkit.gpu.ptx.opcode import DTYPES, Opcode

Array = NDArray[Any]

#: How far the hardware may be from the exact result, in units of the last place; ``lg2``: absolute 2^-22 near 1.
#: Source: PTX ISA 9.0, the section of each instruction.
APPROXIMATIONS: dict[str, float] = {
    "ex2.approx": 2, "rcp.approx": 1, "rsqrt.approx": 2, "sqrt.approx": 2, "div.approx": 2, "div.full": 2,
    "lg2.approx": 2, "sin.approx": 8, "cos.approx": 8, "tanh.approx": 4096,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """A computing instruction.

    Attributes:
        reads: types of the operands after the first.
        makes: type of the result.
        compute: arrays of these types to the result.
    """

    reads: tuple[str, ...]
    makes: str
    compute: Callable[..., Array]


_UNARY_F32: dict[str, Callable[[Array], Array]] = {
    "ex2": lambda x: np.exp2(x.astype(np.float64)).astype(np.float32),
    "lg2": lambda x: np.log2(x.astype(np.float64)).astype(np.float32),
    "sin": lambda x: np.sin(x.astype(np.float64)).astype(np.float32),
    "cos": lambda x: np.cos(x.astype(np.float64)).astype(np.float32),
    "tanh": lambda x: np.tanh(x.astype(np.float64)).astype(np.float32),
    "rsqrt": lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(np.float32),
}
_FLOAT: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul": (2, np.multiply),
    "div": (2, np.divide),
    "fma": (3, rounding.fused),
    "mad": (3, rounding.fused),
    "min": (2, rounding.smaller),
    "max": (2, rounding.larger),
    "neg": (1, np.negative),
    "abs": (1, np.abs),
    "sqrt": (1, np.sqrt),
    "rcp": (1, lambda x: x.dtype.type(1) / x),
}
_INTEGER: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "div": (2, integers.quotient),
    "rem": (2, integers.remainder),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "neg": (1, np.negative),
    "abs": (1, np.abs),
    "and": (2, np.bitwise_and),
    "or": (2, np.bitwise_or),
    "xor": (2, np.bitwise_xor),
    "not": (1, np.bitwise_not),
    "brev": (1, integers.reversed_bits),
}
_PREDICATE: dict[str, tuple[int, Callable[..., Array]]] = {
    "and": (2, np.logical_and),
    "or": (2, np.logical_or),
    "xor": (2, np.logical_xor),
    "not": (1, np.logical_not),
}
_FLOAT_MODIFIERS = {"rn", "rm", "rp", "rz", "ftz", "sat", "approx", "full", "NaN"}
_NEED_ROUNDING = {"add", "sub", "mul", "fma", "mad"}


def operation(opcode: Opcode) -> Operation | None:
    """What an instruction computes, or None if it is none of these.

    Raises:
        PtxError: a modifier or type that is not known for it.
    """
    if not opcode.types:
        return None
    kind = opcode.type
    if kind == "pred":
        return _plain(opcode, _PREDICATE, set())
    if kind in ("f32", "f64"):
        return _float(opcode)
    if kind in ("f16", "f16x2", "bf16", "bf16x2"):
        return None
    return _bits(opcode) or _product(opcode) or _plain(opcode, _INTEGER, set())


def _only(opcode: Opcode, allowed: set[str]) -> None:
    unknown = [m for m in opcode.modifiers if m not in allowed]
    if unknown:
        raise PtxError(f"modifier .{unknown[0]} of {opcode} is unknown to the PTX runner")


def _plain(opcode: Opcode, table: dict[str, tuple[int, Callable[..., Array]]], allowed: set[str]) -> Operation | None:
    if opcode.name not in table:
        return None
    _only(opcode, allowed)
    arity, function = table[opcode.name]
    return Operation((opcode.type,) * arity, opcode.type, function)


def _float(opcode: Opcode) -> Operation | None:
    name, kind = opcode.name, opcode.type
    function: Callable[..., Array]
    if name in _UNARY_F32 and kind == "f32":
        if name != "rsqrt" and not opcode.has("approx"):
            return None
        arity, function = 1, _UNARY_F32[name]
    elif name in _FLOAT:
        arity, function = _FLOAT[name]
    else:
        return None
    _only(opcode, _FLOAT_MODIFIERS)
    direction = next((rounding.DIRECTIONS[m] for m in opcode.modifiers if m in rounding.DIRECTIONS), None)
    if direction is not None:
        function = _directed(opcode, direction)
    if opcode.has("NaN"):
        function = {"min": np.minimum, "max": np.maximum}[name]
    if opcode.has("ftz"):
        function = _flushing(function)
    if opcode.has("sat"):
        function = _saturating(function)
    return Operation((kind,) * arity, kind, function)


def _directed(opcode: Opcode, direction: str) -> Callable[..., Array]:
    """Sums and products that are not rounded to nearest."""
    if opcode.type != "f32" or opcode.name not in _NEED_ROUNDING:
        raise PtxError(f"rounding of {opcode} is unknown to the PTX runner")
    one = np.float32(1)
    match opcode.name:
        case "add":
            return lambda x, y: rounding.fused(x, np.asarray(one), y, direction)
        case "sub":
            return lambda x, y: rounding.fused(y, np.asarray(-one), x, direction)
        case "mul":
            return lambda x, y: rounding.narrowed(np.multiply(x, y, dtype=np.float64), direction)
        case _:
            return lambda x, y, z: rounding.fused(x, y, z, direction)


def _flushing(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args: rounding.flushed(function(*(rounding.flushed(a) for a in args)))


def _saturating(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args: rounding.saturated(function(*args))


def _product(opcode: Opcode) -> Operation | None:
    """Integer multiplication: lower half, upper half, or all of it in a wider type."""
    if opcode.name not in ("mul", "mad"):
        return None
    _only(opcode, {"lo", "hi", "wide"})
    kind = opcode.type
    makes = kind
    if opcode.has("wide"):
        makes = f"{kind[0]}{int(kind[1:]) * 2}"
        multiply: Callable[[Array, Array], Array] = integers.widened
    else:
        multiply = integers.high if opcode.has("hi") else np.multiply
    if opcode.name == "mul":
        return Operation((kind, kind), makes, multiply)
    return Operation((kind, kind, makes), makes, lambda x, y, z: multiply(x, y) + z)


def _bits(opcode: Opcode) -> Operation | None:
    """Shifts and what picks bits apart."""
    kind = opcode.type
    unsigned = f"u{DTYPES[kind]().itemsize * 8}"  # of .b types too
    match opcode.name:
        case "shl":
            found = Operation((unsigned, "u32"), unsigned, integers.shifted_left)
        case "shr":
            found = Operation((kind, "u32"), kind, integers.shifted_right)
        case "shf":
            left, wrap = opcode.has("l"), opcode.has("wrap")
            _only(opcode, {"l", "r", "wrap", "clamp"})
            return Operation(
                ("u32",) * 3, "u32", lambda low, top, by: integers.funnel(low, top, by, left=left, wrap=wrap)
            )
        case "popc":
            found = Operation((unsigned,), "u32", integers.population)
        case "clz":
            found = Operation((unsigned,), "u32", integers.leading_zeros)
        case "bfe":
            found = Operation((kind, "u32", "u32"), kind, integers.extracted)
        case "bfi":
            found = Operation((unsigned, unsigned, "u32", "u32"), unsigned, integers.inserted)
        case "prmt":
            found = Operation(("u32",) * 3, "u32", integers.permuted)
        case "lop3":
            found = Operation(("u32",) * 4, "u32", lambda a, b, c, t: integers.looked_up(a, b, c, int(t)))
        case _:
            return None
    _only(opcode, set())
    return found
