"""Loads, stores and atomic operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError
from labkit.gpu.ptx import rounding
from labkit.gpu.ptx.fault import Fault
from labkit.gpu.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW, Space
from labkit.gpu.ptx.opcode import DTYPES, Opcode
from labkit.gpu.ptx.operands import Reader, elements, reader, writer
from labkit.gpu.ptx.parse import Instruction, Kernel
from labkit.gpu.ptx.step import Effect
from labkit.gpu.ptx.threads import Active, Threads

Array = NDArray[Any]

_SPACES = ("global", "shared", "local", "param", "const")
#: Hints to caches, and orderings: with one instruction at a time everything is ordered.
_HINTS = re.compile(
    r"nc|v[24]|volatile|weak|relaxed|acquire|release|acq_rel|gpu|cta|sys|c[agsv]|lu|wb|wt|L[12]::\w+|noftz"
)
_ADDRESS = re.compile(r"\[\s*([%\w$@]+)\s*(?:\+\s*(-?\w+))?\s*\]")


def space_of(opcode: Opcode) -> str:
    """The state space that is named; "generic" where none is.

    Raises:
        PtxError: another modifier that is not known.
    """
    named = [m.split("::")[0] for m in opcode.modifiers if m.split("::")[0] in _SPACES]
    for modifier in opcode.modifiers:
        if modifier.split("::")[0] not in _SPACES and not _HINTS.fullmatch(modifier):
            raise PtxError(f"modifier .{modifier} of {opcode} is unknown to the PTX runner")
    return named[0] if named else "generic"


def _address(kernel: Kernel, text: str) -> Callable[[Threads, Active, int], Array]:
    """How the address of ``[%rd1+8]`` is computed for so many lanes."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise PtxError(f"operand {text!r} is no address")
    offset = int(match[2] or "0", 0)
    declared = kernel.register_type(match[1])
    base: Reader = reader(kernel, match[1], "u32" if declared in ("b32", "u32", "s32") else "u64")

    def compute(threads: Threads, active: Active, lanes: int) -> Array:
        value = base(threads, active)
        return np.broadcast_to(np.asarray(value).astype(np.int64) + offset, (lanes,))

    return compute


class Access:
    """One instruction's way into memory: address to elements, checked and counted."""

    def __init__(self, kernel: Kernel, index: int, space: str, address: str, size: int) -> None:
        self.index = index
        self.space = space
        self.size = size
        self.address = _address(kernel, address)

    def locate(self, threads: Threads, active: Active, *, load: bool, store: bool) -> tuple[Space, Array]:
        """The space and the index of the first byte of each lane.

        Raises:
            Fault: an access that is not allowed.
        """
        lanes = threads.size if isinstance(active, slice) else len(active)
        address = self.address(threads, active, lanes)
        threads.settle()  # the address, and what is to be stored
        space = self.space
        if space == "generic":
            space, address = _window(address)
        counts = threads.launch.counts
        if space == "shared":
            place = threads.shared.locate(address, self.size, active, load=load, store=store)
            counts.shared_access(self.index, threads.warp[active], threads.lane[active], address, self.size)
            return threads.shared, place
        if space == "local":
            return threads.local, threads.local.locate(address, self.size, active, load=load, store=store)
        place = threads.launch.memory.locate(address, self.size, active, load=load, store=store)
        counts.global_access(self.index, threads.warp[active], address, self.size)
        return threads.launch.memory, place


def _window(address: Array) -> tuple[str, Array]:
    """The space that generic addresses lie in, and the addresses within it."""
    shared, local = address >= SHARED_WINDOW, address >= LOCAL_WINDOW
    if local.all():
        return "local", address - LOCAL_WINDOW
    if (shared & ~local).all():
        return "shared", address - SHARED_WINDOW
    if shared.any():
        raise Fault(
            "one instruction with generic addresses of several memory spaces is unknown to the PTX runner",
            unsupported=True,
        )
    return "global", address


def load(kernel: Kernel, index: int, instruction: Instruction) -> Effect:
    """``ld``: of parameters, or of memory, up to four elements a lane."""
    opcode = instruction.opcode
    space, kind = space_of(opcode), opcode.type
    dtype, targets = DTYPES[kind], elements(instruction.operands[0])
    width = np.dtype(dtype).itemsize
    writers = [writer(kernel, target, kind) for target in targets]
    if space == "param":
        return _load_param(kernel, instruction.operands[1], writers, dtype)
    if space == "const":
        raise PtxError(f"{opcode}: constant memory is unknown to the PTX runner")
    access = Access(kernel, index, space, instruction.operands[1], width * len(targets))

    def effect(threads: Threads, active: Active) -> None:
        memory, place = access.locate(threads, active, load=True, store=False)
        values, first = memory.view(dtype), place // width
        for i, write in enumerate(writers):
            write(threads, active, values[first + i])

    return effect


def _load_param(kernel: Kernel, text: str, writers: list[Any], dtype: Any) -> Effect:
    match = _ADDRESS.fullmatch(text)
    if match is None or match[1] not in kernel.params:
        raise PtxError(f"{text} is no parameter of the kernel")
    name, offset, width = match[1], int(match[2] or "0", 0), np.dtype(dtype).itemsize

    def effect(threads: Threads, active: Active) -> None:
        raw = threads.launch.params[name][offset : offset + width * len(writers)].tobytes()
        for write, value in zip(writers, np.frombuffer(raw, dtype), strict=True):
            write(threads, active, value)

    return effect


def store(kernel: Kernel, index: int, instruction: Instruction) -> Effect:
    """``st``: up to four elements a lane; of lanes that store to the same place, the last one wins."""
    opcode = instruction.opcode
    kind = opcode.type
    dtype, sources = DTYPES[kind], elements(instruction.operands[1])
    width = np.dtype(dtype).itemsize
    readers = [reader(kernel, source, kind) for source in sources]
    access = Access(kernel, index, space_of(opcode), instruction.operands[0], width * len(sources))

    def effect(threads: Threads, active: Active) -> None:
        values = [read(threads, active) for read in readers]
        memory, place = access.locate(threads, active, load=False, store=True)
        target, first = memory.view(dtype), place // width
        for i, value in enumerate(values):
            target[first + i] = value

    return effect


_UPDATES: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
    "cas": lambda old, compare, new: np.where(old == compare, new, old),
}


def atomic(kernel: Kernel, index: int, instruction: Instruction) -> Effect:
    """``atom`` and ``red``: lanes take turns in order of thread; each sees what the one before it left."""
    opcode = instruction.opcode
    returns = opcode.name == "atom"
    updates = [m for m in opcode.modifiers if m in _UPDATES]
    if len(updates) != 1:
        raise PtxError(f"{opcode} is unknown to the PTX runner")
    rest = Opcode(opcode.name, tuple(m for m in opcode.modifiers if m not in _UPDATES), opcode.types, opcode.text)
    kind, update = opcode.type, _UPDATES[updates[0]]
    if kind in ("f16", "bf16", "f16x2", "bf16x2") or any(m in ("v2", "v4") for m in rest.modifiers):
        raise PtxError(f"{opcode} is unknown to the PTX runner")
    dtype = DTYPES[kind]
    width = np.dtype(dtype).itemsize
    flush = kind == "f32" and updates[0] == "add"
    operands = instruction.operands[1 if returns else 0 :]
    space = space_of(rest)
    access = Access(kernel, index, space, operands[0], width)
    readers = [reader(kernel, source, kind) for source in operands[1:]]
    write = writer(kernel, instruction.operands[0], kind) if returns else None

    def effect(threads: Threads, active: Active) -> None:
        sources = [read(threads, active) for read in readers]
        memory, place = access.locate(threads, active, load=True, store=True)
        # global float additions flush subnormal numbers, those in shared memory do not (PTX ISA, "atom")
        one = _flushing(update) if flush and memory is threads.launch.memory else update
        target, where = memory.view(dtype), place // width
        old = _in_turns(target, where, [np.broadcast_to(s, where.shape) for s in sources], one)
        if write is not None:
            write(threads, active, old)

    return effect


def _flushing(update: Callable[..., Any]) -> Callable[..., Any]:
    return lambda old, new: rounding.flushed(update(rounding.flushed(old), rounding.flushed(new)))


def _in_turns(target: Array, where: Array, sources: list[Array], update: Callable[..., Any]) -> Array:
    """Apply an update lane after lane; what each lane found.

    In rounds: the first lane of each place, then the second of each, and so on.
    """
    old = np.empty(where.shape, target.dtype)
    left = np.arange(len(where))
    while len(left):
        _, first = np.unique(where[left], return_index=True)
        now = left[first]
        old[now] = target[where[now]]
        target[where[now]] = update(old[now], *(s[now] for s in sources))
        keep = np.ones(len(left), np.bool_)
        keep[first] = False
        left = left[keep]
    return old
