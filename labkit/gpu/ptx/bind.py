"""Binds each instruction of a kernel to what it does; one that is not known is refused by its name and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError, PtxUnsupportedError
from labkit.gpu.ptx import access, collectives, rounding
from labkit.gpu.ptx.arithmetic import Operation, operation
from labkit.gpu.ptx.convert import conversion
from labkit.gpu.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW
from labkit.gpu.ptx.opcode import DTYPES, Opcode
from labkit.gpu.ptx.operands import Reader, elements, reader, writer
from labkit.gpu.ptx.parse import Instruction, Kernel
from labkit.gpu.ptx.step import Effect, Kind, Step
from labkit.gpu.ptx.threads import Active, Threads

Array = NDArray[Any]


def bind(kernel: Kernel) -> list[Step]:
    """The steps of a kernel.

    Raises:
        PtxUnsupportedError: an instruction, a modifier or an operand that the runner does not know.
    """
    steps = []
    for index, instruction in enumerate(kernel.code):
        try:
            steps.append(_step(kernel, index, instruction))
        except PtxError as error:
            raise PtxUnsupportedError(f"{kernel.name}, {instruction.line}, `{instruction}`: {error}") from None
    return steps


def _step(kernel: Kernel, index: int, instruction: Instruction) -> Step:
    opcode, operands = instruction.opcode, instruction.operands
    match opcode.name:
        case "bra":
            if operands[0] not in kernel.labels:
                raise PtxError(f"label {operands[0]} is not in the kernel")
            return Step(Kind.BRANCH, target=kernel.labels[operands[0]])
        case "ret" | "exit":
            return Step(Kind.LEAVE)
        case "bar" | "barrier":
            return collectives.barrier(kernel, instruction)
        case "shfl" | "vote" | "match" | "redux":
            return collectives.collective(kernel, instruction)
        case "membar" | "fence" | "prefetch" | "prefetchu":  # memory is in order here
            return Step()
    return Step(effect=_effect(kernel, index, instruction))


def _effect(kernel: Kernel, index: int, instruction: Instruction) -> Effect:
    opcode = instruction.opcode
    match opcode.name:
        case "ld" | "ldu":
            return access.load(kernel, index, instruction)
        case "st":
            return access.store(kernel, index, instruction)
        case "atom" | "red":
            return access.atomic(kernel, index, instruction)
        case "activemask":
            return collectives.active_mask(kernel, instruction)
        case "mov":
            return _move(kernel, instruction)
        case "setp":
            return _comparison(kernel, instruction)
        case "cvt":
            found: Operation | None = conversion(opcode)
        case "cvta":
            found = _to_window(opcode)
        case "selp":
            return _selection(kernel, instruction)
        case "and" | "or" if opcode.type == "pred":
            return _connective(kernel, instruction)
        case _:
            found = operation(opcode)
    if found is None:
        raise PtxError("this instruction is unknown to the PTX runner")
    return _computing(kernel, instruction, found)


def _selection(kernel: Kernel, instruction: Instruction) -> Effect:
    """``selp``: of the two values only the chosen one counts, for doubt too."""
    kind = instruction.opcode.type
    first, second = (reader(kernel, text, kind) for text in instruction.operands[1:3])
    choice, write = reader(kernel, instruction.operands[3], "pred"), writer(kernel, instruction.operands[0], kind)

    def effect(threads: Threads, active: Active) -> None:
        (x, of_x), (y, of_y), (chosen, of_choice) = (_apart(r, threads, active) for r in (first, second, choice))
        if of_x is not None or of_y is not None or of_choice is not None:
            taken = np.where(chosen, False if of_x is None else of_x, False if of_y is None else of_y)
            threads.doubt = taken if of_choice is None else taken | of_choice
        write(threads, active, np.where(chosen, x, y))

    return effect


def _connective(kernel: Kernel, instruction: Instruction) -> Effect:
    """``and.pred``, ``or.pred``: one operand that decides makes the other one irrelevant, for doubt too."""
    conjunction = instruction.opcode.name == "and"
    first, second = (reader(kernel, text, "pred") for text in instruction.operands[1:3])
    write = writer(kernel, instruction.operands[0], "pred")

    def effect(threads: Threads, active: Active) -> None:
        (x, of_x), (y, of_y) = _apart(first, threads, active), _apart(second, threads, active)
        if of_x is not None or of_y is not None:
            decided = [
                (~v if conjunction else v) & (True if doubt is None else ~doubt) for v, doubt in ((x, of_x), (y, of_y))
            ]
            unknown = (False if of_x is None else of_x) | (False if of_y is None else of_y)
            threads.doubt = unknown & ~(decided[0] | decided[1])
        write(threads, active, x & y if conjunction else x | y)

    return effect


def _apart(read: Reader, threads: Threads, active: Active) -> tuple[Array, Array | None]:
    """What an operand reads, and the doubt about it alone."""
    threads.doubt = None
    value = read(threads, active)
    doubt, threads.doubt = threads.doubt, None
    return value, doubt


def _computing(kernel: Kernel, instruction: Instruction, found: Operation) -> Effect:
    sources = instruction.operands[1:]
    if len(sources) != len(found.reads):
        raise PtxError(f"expected {len(found.reads)} operands after the first, got {len(sources)}")
    readers = [reader(kernel, text, kind) for text, kind in zip(sources, found.reads, strict=True)]
    write = writer(kernel, instruction.operands[0], found.makes)
    compute = found.compute

    def effect(threads: Threads, active: Active) -> None:
        write(threads, active, compute(*[read(threads, active) for read in readers]))

    return effect


def _to_window(opcode: Opcode) -> Operation:
    """``cvta``: from an address within a space to a generic one, or back (``.to``)."""
    window = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
    space = next((m.split("::")[0] for m in opcode.modifiers if m.split("::")[0] in window), None)
    if space is None or opcode.type != "u64":
        raise PtxError("this instruction is unknown to the PTX runner")
    shift = np.uint64(window[space])
    if opcode.has("to"):
        return Operation(("u64",), "u64", lambda address: address - shift)
    return Operation(("u64",), "u64", lambda address: address + shift)


def _move(kernel: Kernel, instruction: Instruction) -> Effect:
    """``mov``: plain, or between a register and a vector of smaller ones, the lowest bits first."""
    kind = instruction.opcode.type
    targets, sources = (elements(o) for o in instruction.operands)
    if len(targets) == len(sources) == 1:
        return _computing(kernel, instruction, Operation((kind,), kind, lambda value: value))
    size = np.dtype(DTYPES[kind]).itemsize * 8
    part = f"u{size // max(len(targets), len(sources))}"
    if len(sources) == 1:
        whole = reader(kernel, sources[0], f"u{size}")
        writers = [writer(kernel, target, part) for target in targets]

        def unpack(threads: Threads, active: Active) -> None:
            bits = np.asarray(whole(threads, active))
            pieces = np.ascontiguousarray(bits.reshape(-1, 1)).view(DTYPES[part])
            for i, write in enumerate(writers):
                write(threads, active, pieces[:, i] if bits.shape else pieces[0, i])

        return unpack
    readers = [reader(kernel, source, part) for source in sources]
    write_whole = writer(kernel, targets[0], f"u{size}")

    def pack(threads: Threads, active: Active) -> None:
        pieces = np.broadcast_arrays(*(read(threads, active) for read in readers))
        stacked = np.ascontiguousarray(np.stack(pieces, axis=-1)).view(DTYPES[f"u{size}"])
        write_whole(threads, active, stacked[..., 0])

    return pack


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": lambda x, y: (x < y) | (x > y),  # false where one is NaN
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "equ": lambda x, y: ~((x < y) | (x > y)),
    "neu": np.not_equal,
    "ltu": lambda x, y: ~(x >= y),
    "leu": lambda x, y: ~(x > y),
    "gtu": lambda x, y: ~(x <= y),
    "geu": lambda x, y: ~(x < y),
    "num": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "nan": lambda x, y: np.isnan(x) | np.isnan(y),
}
_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _comparison(kernel: Kernel, instruction: Instruction) -> Effect:
    """``setp``: one predicate or a pair ``%p1|%p2``, perhaps combined with a third."""
    opcode, operands = instruction.opcode, instruction.operands
    kind, modifiers = opcode.type, [m for m in opcode.modifiers if m != "ftz"]
    combine = _COMBINE[modifiers[1]] if len(modifiers) == 2 and modifiers[1] in _COMBINE else None
    if not modifiers or modifiers[0] not in _COMPARE or len(modifiers) != (1 if combine is None else 2):
        raise PtxError("this instruction is unknown to the PTX runner")
    compare, flush = _COMPARE[modifiers[0]], opcode.has("ftz")
    first, second = reader(kernel, operands[1], kind), reader(kernel, operands[2], kind)
    third = reader(kernel, operands[3], "pred") if combine is not None else None
    holds, _, fails = (o.strip() for o in operands[0].partition("|"))
    write = writer(kernel, holds, "pred")
    write_other = writer(kernel, fails, "pred") if fails else None

    def effect(threads: Threads, active: Active) -> None:
        x, y = first(threads, active), second(threads, active)
        if flush:
            x, y = rounding.flushed(x), rounding.flushed(y)
        result = compare(x, y)
        other = np.logical_not(result)
        if combine is not None and third is not None:
            more = third(threads, active)
            result, other = combine(result, more), combine(other, more)
        write(threads, active, result)
        if write_other is not None:
            write_other(threads, active, other)

    return effect
