"""Instructions in which the lanes of a warp, or the threads of a block, answer one another.

The schedule calls them with all lanes together that wait for one another.

Source: PTX ISA 9.0, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "activemask", "barrier".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError
from labkit.gpu.ptx.fault import Fault
from labkit.gpu.ptx.operands import Reader, reader, writer
from labkit.gpu.ptx.parse import Instruction, Kernel
from labkit.gpu.ptx.step import Effect, Kind, Step
from labkit.gpu.ptx.threads import WARP, Active, Threads

Array = NDArray[Any]


def masks_of(threads: Threads, active: Active) -> Array:
    """A 32-bit mask a warp of the threads that are in ``active``."""
    there = np.zeros(threads.size, np.bool_)
    there[active] = True
    return np.packbits(there.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).ravel()


def collective(kernel: Kernel, instruction: Instruction) -> Step:
    """Bind a warp-wide instruction.

    Raises:
        PtxError: a form that is not known, among them those without ``.sync``, which are gone since Volta.
    """
    opcode, operands = instruction.opcode, instruction.operands
    if not opcode.has("sync"):
        raise PtxError(f"{opcode} without .sync is unknown to the PTX runner")
    mask = reader(kernel, operands[-1], "u32")
    match opcode.name:
        case "shfl":
            effect = _shuffle(kernel, instruction)
        case "vote":
            effect = _vote(kernel, instruction, mask)
        case "match":
            effect = _match(kernel, instruction, mask)
        case "redux":
            effect = _reduction(kernel, instruction, mask)
        case _:
            raise PtxError(f"{opcode} is unknown to the PTX runner")
    return Step(Kind.WARP, effect, mask=mask)


def _results(operand: str) -> tuple[str, str | None]:
    """The register and the predicate of ``%r1|%p2``."""
    value, _, predicate = operand.partition("|")
    return value.strip(), predicate.strip() or None


def _shuffle(kernel: Kernel, instruction: Instruction) -> Effect:
    operands, mode = instruction.operands, instruction.opcode.modifiers[1]
    target, predicate = _results(operands[0])
    write = writer(kernel, target, "b32")
    tell = None if predicate is None else writer(kernel, predicate, "pred")
    value, by, clamp = (reader(kernel, o, "b32") for o in operands[1:4])
    if mode not in ("up", "down", "bfly", "idx"):
        raise PtxError(f"{instruction.opcode} is unknown to the PTX runner")

    def effect(threads: Threads, active: Active) -> None:
        lane = threads.lane[active]
        step = np.asarray(by(threads, active)).astype(np.int64) & 31
        control = np.asarray(clamp(threads, active)).astype(np.int64)
        segment, limit = control >> 8 & 31, control & 31
        last = (lane & segment) | (limit & ~segment)
        match mode:
            case "up":
                source = lane - step
                inside = source >= last
            case "down":
                source = lane + step
                inside = source <= last
            case "bfly":
                source = lane ^ step
                inside = source <= last
            case _:
                source = (lane & segment) | (step & ~segment)
                inside = source <= last
        source = np.where(inside, source, lane)
        threads.settle()
        given = np.zeros(threads.size, np.uint32)
        given[active] = value(threads, active)
        here = np.zeros(threads.size, np.bool_)
        here[active] = True
        asked = threads.warp[active] * WARP + source
        if not here[asked].all():
            at = int(np.flatnonzero(~here[asked])[0])
            raise Fault(f"the shuffle reads lane {int(source[at])}, which takes no part in it", at)
        if threads.doubt is not None:  # it goes with the value to the lane that reads it
            doubted = np.zeros(threads.size, np.bool_)
            doubted[active] = threads.doubt
            threads.doubt = doubted[asked]
        write(threads, active, given[asked])
        threads.doubt = None
        if tell is not None:
            tell(threads, active, inside)

    return effect


def _vote(kernel: Kernel, instruction: Instruction, mask: Reader) -> Effect:
    mode = instruction.opcode.modifiers[1]
    if mode not in ("ballot", "any", "all", "uni"):
        raise PtxError(f"{instruction.opcode} is unknown to the PTX runner")
    predicate = reader(kernel, instruction.operands[1], "pred")
    write = writer(kernel, instruction.operands[0], "b32" if mode == "ballot" else "pred")

    def effect(threads: Threads, active: Active) -> None:
        lanes = np.arange(threads.size)[active]
        true = lanes[np.broadcast_to(predicate(threads, active), lanes.shape)]
        warp = threads.warp[active]
        named = np.asarray(mask(threads, active))
        yes = masks_of(threads, true)[warp] & named
        asked = masks_of(threads, active)[warp] & named
        threads.settle()
        answers = {"ballot": yes, "any": yes != 0, "all": yes == asked, "uni": (yes == asked) | (yes == 0)}
        write(threads, active, answers[mode])

    return effect


def _groups(threads: Threads, active: Active, named: Array, *more: Array) -> tuple[int, Array]:
    """Lanes of one warp with one mask (and one value): how many groups, and the group of each lane."""
    warp = threads.warp[active]
    keys = [np.broadcast_to(np.asarray(k).astype(np.int64), warp.shape) for k in (warp, named, *more)]
    unique, group = np.unique(np.stack(keys), axis=1, return_inverse=True)
    return unique.shape[1], group.ravel()


def _match(kernel: Kernel, instruction: Instruction, mask: Reader) -> Effect:
    if instruction.opcode.modifiers[0] != "any":
        raise PtxError(f"{instruction.opcode} is unknown to the PTX runner")
    unsigned = {"b32": "u32", "b64": "u64"}[instruction.opcode.type]
    value = reader(kernel, instruction.operands[1], unsigned)
    write = writer(kernel, instruction.operands[0], "b32")

    def effect(threads: Threads, active: Active) -> None:
        count, group = _groups(threads, active, mask(threads, active), value(threads, active))
        equal = np.zeros(count, np.uint32)
        threads.settle()
        np.bitwise_or.at(equal, group, np.uint32(1) << threads.lane[active].astype(np.uint32))
        write(threads, active, equal[group])

    return effect


_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _reduction(kernel: Kernel, instruction: Instruction, mask: Reader) -> Effect:
    kind, name = instruction.opcode.type, instruction.opcode.modifiers[1]
    if name not in _REDUCTIONS or kind not in ("u32", "s32", "b32"):
        raise PtxError(f"{instruction.opcode} is unknown to the PTX runner")
    value, write = reader(kernel, instruction.operands[1], kind), writer(kernel, instruction.operands[0], kind)
    combine = _REDUCTIONS[name]

    def effect(threads: Threads, active: Active) -> None:
        count, group = _groups(threads, active, mask(threads, active))
        values = np.broadcast_to(value(threads, active), group.shape)
        threads.settle()
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(count))
        write(threads, active, combine.reduceat(values[order], starts)[group].astype(values.dtype))

    return effect


def active_mask(kernel: Kernel, instruction: Instruction) -> Effect:
    """``activemask``: the lanes of the warp that execute together."""
    write = writer(kernel, instruction.operands[0], "b32")
    return lambda threads, active: write(threads, active, masks_of(threads, active)[threads.warp[active]])


def barrier(kernel: Kernel, instruction: Instruction) -> Step:
    """``bar``: of a warp, of a block, and of a block with a vote (``__syncthreads_or`` and its kin).

    Raises:
        PtxError: a barrier for a part of the block, or one that does not wait.
    """
    opcode, operands = instruction.opcode, instruction.operands
    modifiers = tuple(m for m in opcode.modifiers if m not in ("cta", "aligned"))
    match modifiers:
        case ("warp", "sync"):
            return Step(Kind.WARP, mask=reader(kernel, operands[0], "u32"))
        case ("sync",) if len(operands) == 1:
            return Step(Kind.BLOCK)
        case ("red", "popc" | "and" | "or" as mode) if len(operands) == 3:
            return Step(Kind.BLOCK, _block_vote(kernel, operands, mode))
    raise PtxError(f"{instruction} is unknown to the PTX runner")


def _block_vote(kernel: Kernel, operands: tuple[str, ...], mode: str) -> Effect:
    predicate = reader(kernel, operands[2], "pred")
    write = writer(kernel, operands[0], "u32" if mode == "popc" else "pred")
    answers: dict[str, Callable[[Array, Array], Array]] = {
        "popc": lambda yes, asked: yes.astype(np.uint32),
        "and": lambda yes, asked: yes == asked,
        "or": lambda yes, asked: yes > 0,
    }

    def effect(threads: Threads, active: Active) -> None:
        block = threads.block_of[active]
        true = np.broadcast_to(predicate(threads, active), block.shape)
        threads.settle()
        yes = np.bincount(block[true], minlength=threads.blocks)
        asked = np.bincount(block, minlength=threads.blocks)
        write(threads, active, answers[mode](yes, asked)[block])

    return effect
