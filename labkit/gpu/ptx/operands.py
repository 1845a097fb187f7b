"""Operands of an instruction, bound once: functions that read them from, or write them to, the lanes that execute."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError
from labkit.gpu.ptx.constants import UNSIGNED, constant
from labkit.gpu.ptx.opcode import DTYPES
from labkit.gpu.ptx.parse import Kernel
from labkit.gpu.ptx.threads import Active, Threads

Array = NDArray[Any]
Reader = Callable[[Threads, Active], Array]
Writer = Callable[[Threads, Active, Array], None]

_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def reader(kernel: Kernel, text: str, kind: str) -> Reader:
    """How an operand is read as values of a type: a register, a special register, a number, the address of an array.

    Raises:
        PtxError: there is no such thing.
    """
    dtype = DTYPES[kind]
    if text.startswith("!"):
        inner = reader(kernel, text[1:].strip(), kind)
        return lambda threads, active: ~inner(threads, active)
    declared = kernel.register_type(text)
    if declared is not None:
        convert = _reinterpret(DTYPES[declared], dtype, text)
        return lambda threads, active: convert(threads.read(text, active))
    if text.startswith("%"):
        return _special(text, dtype)
    if text in kernel.shared or text in kernel.local:
        offset = np.asarray(kernel.shared.get(text, kernel.local.get(text)), dtype)[()]
        return lambda threads, active: offset
    if text in kernel.variables:
        return lambda threads, active: np.asarray(threads.launch.memory.variables[text], dtype)[()]
    number = constant(text, dtype)
    return lambda threads, active: number


def _special(text: str, dtype: Any) -> Reader:
    def read(threads: Threads, active: Active) -> Array:
        return threads.special[text][active].astype(dtype)

    if not re.fullmatch(r"%(?:n?(?:tid|ctaid)\.[xyz]|laneid|warpid|lanemask_(?:eq|l[te]|g[te]))", text):
        raise PtxError(f"register {text} is unknown to the PTX runner")
    return read


def _reinterpret(have: Any, want: Any, text: str) -> Callable[[Array], Array]:
    """Bits of a register as a type of the same size, or its low bits as a smaller one."""
    size, wanted = np.dtype(have).itemsize, np.dtype(want).itemsize
    if have is want:
        return lambda value: value
    if size == wanted and (have is np.bool_) == (want is np.bool_):
        return lambda value: value.view(want)
    if size > wanted:
        unsigned, low = UNSIGNED[size], UNSIGNED[wanted]
        return lambda value: value.view(unsigned).astype(low).view(want)
    raise PtxError(f"register {text} of {size} bytes is read as {wanted} bytes")


def writer(kernel: Kernel, text: str, kind: str) -> Writer:
    """How values of a type go to a register: as bits, extended by sign or zero where the register is wider.

    Raises:
        PtxError: there is no such register.
    """
    if text == "_":
        return lambda threads, active, value: None
    declared = kernel.register_type(text)
    if declared is None:
        raise PtxError(f"register {text} is not declared")
    dtype, have = DTYPES[declared], DTYPES[kind]
    size, given = np.dtype(dtype).itemsize, np.dtype(have).itemsize
    if dtype is have:
        return lambda threads, active, value: threads.write(text, active, value)
    if size == given:
        return lambda threads, active, value: threads.write(text, active, np.asarray(value, have).view(dtype))
    if size < given:
        raise PtxError(f"register {text} of {size} bytes cannot hold a .{kind}")
    wide = (_SIGNED if np.dtype(have).kind == "i" else UNSIGNED)[size]

    def write(threads: Threads, active: Active, value: Array) -> None:
        bits = np.asarray(value, have)
        bits = bits if np.dtype(have).kind in "iu" else bits.view(UNSIGNED[given])
        threads.write(text, active, bits.astype(wide).view(dtype))

    return write


def elements(text: str) -> list[str]:
    """The registers of a vector operand ``{%f1, %f2}``; of a plain one, itself."""
    return [e.strip() for e in text[1:-1].split(",")] if text.startswith("{") else [text]
