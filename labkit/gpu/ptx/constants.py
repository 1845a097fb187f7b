"""Numbers as PTX writes them, and the variables that a module starts with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError, PtxUnsupportedError
from labkit.gpu.ptx.opcode import DTYPES

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

_INTEGER = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?")
_GLOBAL = re.compile(
    r"\.global\s+(?:\.align\s+\d+\s+)?\.(?P<kind>\w+)\s+(?P<name>[\w$]+)(?:\[(?P<size>\d+)\])?"
    r"\s*(?:=\s*(?P<value>\{[^}]*\}|[^;{]+))?;"
)
_CONST = re.compile(r"\.const\s+(?:\.align\s+\d+\s+)?\.\w+\s+(?P<name>[\w$]+)")


def constant(text: str, dtype: Any) -> Any:
    """A number as PTX writes it: ``-4``, ``0x1F``, ``0f3F800000``, ``0d3FF0000000000000``.

    Raises:
        PtxError: it is none.
    """
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return np.uint32(int(text[2:], 16)).view(np.float32).astype(dtype)
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return np.uint64(int(text[2:], 16)).view(np.float64).astype(dtype)
    if text == "WARP_SZ":
        return dtype(32)
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise PtxError(f"operand {text!r} is neither a register nor a number nor an array of this kernel")
    digits = match[2]
    base = 8 if re.fullmatch(r"0[0-7]+", digits) else 0
    value = int(digits, base) * (-1 if match[1] == "-" else 1)
    if dtype is np.bool_:
        return np.bool_(value)
    return np.uint64(value % (1 << 64)).astype(UNSIGNED[np.dtype(dtype).itemsize]).view(dtype)


def global_variables(text: str) -> Mapping[str, NDArray[Any]]:
    """The ``__device__`` variables of a module (``.global``), name to memory with what they start with.

    Args:
        text: of the PTX, outside of its kernels.

    Raises:
        PtxUnsupportedError: one starts with an address, or the module has constant memory.
    """
    if match := _CONST.search(text):
        raise PtxUnsupportedError(f"variable {match['name']} is in constant memory, unknown to the PTX runner.")
    found = {}
    for match in _GLOBAL.finditer(text):
        memory = np.zeros(int(match["size"] or 1), DTYPES[match["kind"]])
        written = [part.strip() for part in (match["value"] or "").strip("{} \n").split(",") if part.strip()]
        for place, number in enumerate(written):
            try:
                memory[place] = constant(number, DTYPES[match["kind"]])
            except PtxError:
                raise PtxUnsupportedError(
                    f"variable {match['name']} starts with {number!r}: the PTX runner knows numbers alone."
                ) from None
        found[match["name"]] = memory
    return found
