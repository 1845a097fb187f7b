"""Small PTX programs for tests: one instruction on many lanes, or a body of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.gpu.ptx.counts import Counts
from labkit.gpu.ptx.parse import Kernel, parse
from labkit.gpu.ptx.runner import run

Array = NDArray[Any]

TYPES = {
    "bool": "pred", "uint8": "u8", "uint16": "u16", "int16": "s16", "float16": "b16", "uint32": "u32", "int32": "s32",
    "float32": "f32", "uint64": "u64", "int64": "s64", "float64": "f64",
}  # fmt: skip
REGISTERS = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def kernel(body: str, params: str = "", name: str = "f") -> Kernel:
    """An entry function with a store of registers: %r (b32), %q (b64), %f (f32), %d (f64), %h (b16), %p (pred)."""
    registers = " ".join(
        f".reg .{kind} %{prefix}<40>;"
        for prefix, kind in (("r", "b32"), ("q", "b64"), ("f", "f32"), ("d", "f64"), ("h", "b16"), ("p", "pred"))
    )
    entry = f".visible .entry {name}({params})\n{{\n{registers}\n{body}\nret;\n}}"
    return parse(f".version 9.0\n.target sm_90\n.address_size 64\n{entry}")[name]


def params(*kinds: str) -> str:
    """A parameter list: ``p0``, ``p1``, …"""
    return ", ".join(f".param .{kind} p{i}" for i, kind in enumerate(kinds))


def addressed(count: int, sizes: tuple[int, ...]) -> str:
    """Code that leaves the address of element tid.x of pointer i in %q(i), and tid.x in %r0."""
    lines = ["mov.u32 %r0, %tid.x;"]
    for i in range(count):
        lines += [f"ld.param.u64 %q{20 + i}, [p{i}];", f"mul.wide.u32 %q{30 + i}, %r0, {sizes[i]};"]
        lines += [f"add.s64 %q{i}, %q{20 + i}, %q{30 + i};"]
    return "\n".join(lines)


def compute(instruction: str, *inputs: Array, out: Any = None) -> Array:
    """What one instruction makes of its inputs, a lane an element: it reads %a, %b, %c and writes %x.

    Predicates go in and out as bool arrays.
    """
    result = np.dtype(out or inputs[0].dtype)
    arrays = [np.array(a) for a in inputs]
    lanes = arrays[0].size
    target = np.zeros(lanes, np.uint8 if result == np.bool_ else result)
    stored = [a.view(np.uint8) if a.dtype == np.bool_ else a for a in arrays]
    lines = [addressed(1 + len(arrays), (target.itemsize, *(a.itemsize for a in stored)))]
    lines.append(f".reg .{_register(result)} %x;")
    for name, array, place in zip("abc", arrays, range(1, 4), strict=False):
        lines.append(f".reg .{_register(array.dtype)} %{name};")
        if array.dtype == np.bool_:
            lines += [f"ld.global.u8 %h{place}, [%q{place}];", f"setp.ne.u16 %{name}, %h{place}, 0;"]
        else:
            lines.append(f"ld.global.{TYPES[array.dtype.name]} %{name}, [%q{place}];")
    lines.append(instruction)
    if result == np.bool_:
        lines += ["selp.u16 %h9, 1, 0, %x;", "st.global.u8 [%q0], %h9;"]
    else:
        lines.append(f"st.global.{TYPES[result.name]} [%q0], %x;")
    program = kernel("\n".join(lines), params(*["u64"] * (1 + len(arrays))))
    run(program, (1,), (lanes,), [target, *stored])
    return target.view(np.bool_) if result == np.bool_ else target


def _register(dtype: np.dtype[Any]) -> str:
    if dtype == np.bool_:
        return "pred"
    return TYPES[dtype.name] if dtype.name in ("float32", "float64") else REGISTERS[dtype.itemsize]


def launched(
    body: str, *args: Any, block: int = 32, grid: int = 1, shared_bytes: int = 0, max_steps: int = 10_000
) -> Counts:
    """Run a body: arrays are pointers p0, p1, …; addresses of their elements tid.x are in %q0, %q1, …; tid.x in %r0."""
    kinds = ["u64" if isinstance(a, np.ndarray) else TYPES[a.dtype.name] for a in args]
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    head = addressed(len(arrays), tuple(a.itemsize for a in arrays))
    program = kernel(head + "\n" + body, params(*kinds))
    return run(program, (grid,), (block,), args, shared_bytes=shared_bytes, max_steps=max_steps)
