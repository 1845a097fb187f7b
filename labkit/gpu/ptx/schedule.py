"""Which lanes execute: of all threads that can, those at the lowest address, until they meet others or part.

Threads that parted meet again at the lowest address that both reach, which for the code that NVRTC lays out is where
the branches join. Lanes that need others (shuffles, barriers) wait until those are there.

Source: S. Collange, "Stack-less SIMT reconvergence at low cost", 2011 (the rule of the lowest address).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import PtxError, PtxUnsupportedError
from labkit.gpu.ptx.collectives import masks_of
from labkit.gpu.ptx.fault import Fault
from labkit.gpu.ptx.step import Kind, Step
from labkit.gpu.ptx.threads import LEFT, WAITING, Active, Threads

Array = NDArray[Any]

_ALL = slice(None)


@dataclass(slots=True)
class _Front:
    """The lanes that execute now, and how far they may go before they meet others."""

    active: Active
    threads: int
    warps: int
    place: int
    limit: int


class Schedule:
    """Runs the threads of some blocks to their end."""

    def __init__(self, threads: Threads, steps: list[Step], max_steps: int) -> None:
        self.threads = threads
        self.steps = steps
        self.code = threads.launch.kernel.code
        self.steps_left = max_steps
        self.current: Active = _ALL  # the lanes of the instruction in hand, for messages
        self.place = 0

    def run(self) -> None:
        """Until all have left.

        Raises:
            PtxError: a fault, a deadlock, or too many steps.
        """
        at = self.threads.at
        with np.errstate(all="ignore"):
            try:
                while (place := int(at.min())) < LEFT:
                    if place >= WAITING:
                        self._release_some()
                    else:
                        self._advance(self._front(place))
            except Fault as fault:
                raise self._error(fault) from None

    def _front(self, place: int) -> _Front:
        at = self.threads.at
        here = at == place
        active = np.flatnonzero(here)
        if len(active) == self.threads.size:
            return _Front(_ALL, self.threads.size, self.threads.warps, place, len(self.steps))
        limit = min(int(np.where(here, LEFT, at).min()), len(self.steps))
        warp = self.threads.warp[active]
        warps = 1 + int(np.count_nonzero(warp[1:] != warp[:-1]))
        return _Front(active, len(active), warps, place, limit)

    def _advance(self, front: _Front) -> None:
        """Execute one instruction after another until the lanes part, wait, leave or meet others."""
        at, counts = self.threads.at, self.threads.launch.counts
        place, whole = front.place, front.active
        while place < front.limit:
            self.place, self.current = place, whole
            self._count_step()
            step = self.steps[place]
            taking = self._guarded(place, whole)
            self.current = taking
            lanes = self.threads.size if isinstance(taking, slice) else len(taking)
            if step.kind in (Kind.PLAIN, Kind.BRANCH, Kind.LEAVE):
                counts.issued(place, front.warps, lanes)
            if step.kind is Kind.PLAIN:
                if lanes:
                    self.threads.doubt = None
                    step.effect(self.threads, taking)
                place += 1
            elif step.kind is Kind.BRANCH and lanes in (0, front.threads):
                place = step.target if lanes else place + 1
            elif not self._parted(step, place, whole, taking):
                place += 1
            else:
                return
        at[whole] = LEFT if place >= len(self.steps) else place

    def _guarded(self, place: int, whole: Active) -> Active:
        """Those of the lanes whose guard lets them take part."""
        instruction = self.code[place]
        if instruction.guard is None:
            return whole
        self.threads.doubt = None
        mask = self.threads.read(instruction.guard, whole)
        self.threads.settle()
        mask = ~mask if instruction.guard_negated else mask
        if mask.all():
            return whole
        return np.flatnonzero(mask) if isinstance(whole, slice) else whole[mask]

    def _parted(self, step: Step, place: int, whole: Active, taking: Active) -> bool:
        """Send the lanes their ways; False where all of them stay together and go on."""
        at = self.threads.at
        at[whole] = place + 1
        if step.kind is Kind.BRANCH:
            at[taking] = step.target
        elif step.kind is Kind.LEAVE:
            at[taking] = LEFT
        else:
            at[taking] = WAITING + place
            self._release(place)
            return bool((at[whole] != place + 1).any() or np.count_nonzero(at == place + 1) != np.size(at[whole]))
        return True

    def _release(self, place: int) -> bool:
        """Let the lanes that wait at an instruction execute it if those they wait for are there."""
        threads, step = self.threads, self.steps[place]
        waiting = np.flatnonzero(threads.at == WAITING + place)
        if not len(waiting):
            return False
        self.place, self.current = place, waiting
        ready = self._ready_warps(step, waiting) if step.kind is Kind.WARP else self._ready_blocks(waiting)
        if not ready.any():
            return False
        chosen = waiting[ready]
        warp = threads.warp[chosen]
        warps = 1 + int(np.count_nonzero(warp[1:] != warp[:-1]))
        threads.launch.counts.issued(place, warps, len(chosen))
        going: Active = _ALL if len(chosen) == threads.size else chosen
        self.current = going
        threads.doubt = None
        step.effect(threads, going)
        threads.at[going] = place + 1
        return True

    def _ready_warps(self, step: Step, waiting: Array) -> Array:
        threads = self.threads
        if step.mask is None:
            raise ValueError("a warp-wide step has a mask")
        threads.doubt = None
        named = np.broadcast_to(np.asarray(step.mask(threads, waiting)), waiting.shape)
        threads.settle()
        lane, warp = threads.lane[waiting].astype(np.uint32), threads.warp[waiting]
        outside = named >> lane & np.uint32(1) == 0
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise Fault(f"lane {int(lane[at])} is not in its own mask {int(named[at]):#010x}", at)
        missing = named & masks_of(threads, threads.at < LEFT)[warp] & ~masks_of(threads, waiting)[warp]
        return np.asarray(missing == 0)

    def _ready_blocks(self, waiting: Array) -> Array:
        threads = self.threads
        alive = np.bincount(threads.block_of[threads.at < LEFT], minlength=threads.blocks)
        here = np.bincount(threads.block_of[waiting], minlength=threads.blocks)
        ready: Array = (alive == here)[threads.block_of[waiting]]
        return ready

    def _release_some(self) -> None:
        """Nobody can move on: those who left may have been the last that others waited for."""
        at = self.threads.at
        places = np.unique(at[at < LEFT]) - WAITING
        released = [self._release(int(place)) for place in places]
        if any(released):
            return
        self.current = np.flatnonzero(at == WAITING + places[0])
        self.place = int(places[0])
        where = " and ".join(f"{self.code[p].line} `{self.code[p].opcode}`" for p in places[:4])
        raise Fault(f"deadlock: threads wait at {where} for others that never come", 0)

    def _count_step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Fault("still running after the greatest number of steps; does a loop not end?", 0)

    def _error(self, fault: Fault) -> PtxError:
        """Say where it happened."""
        instruction = self.code[self.place]
        where = ""
        if fault.lane is not None:
            lanes = np.arange(self.threads.size)[self.current]
            where = f", {self.threads.place_of(int(lanes[min(fault.lane, len(lanes) - 1)]))}"
        name = self.threads.launch.kernel.name
        error = PtxUnsupportedError if fault.unsupported else PtxError
        return error(f"{name}, {instruction.line}{where}: {fault.message} (`{instruction}`)")
