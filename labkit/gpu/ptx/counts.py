"""What the warps did, exactly: issues, active lanes, memory requests, sectors, passes through the banks.

The counts are those of the PTX under lowest-address-first reconvergence. They are a model of a device (Origin
``modelled``): its assembler may merge or move instructions, and its caches are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.gpu.ptx.parse import Kernel, Line

Array = NDArray[Any]

SECTOR_BYTES = 32
_BANKS = 32
_BANK_BYTES = 4


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one instruction, one source line or a whole launch.

    Attributes:
        issues: warp instructions.
        lanes: thread instructions: lanes that took part, summed over the issues.
        requests: warp instructions that touched global memory.
        request_lanes: lanes that took part in them.
        sectors: 32-byte sectors of global memory that they touched, each once a request.
        ideal_sectors: as many as their distinct bytes would fill.
        shared_requests: warp instructions that touched shared memory.
        bank_passes: trips through the banks that they took.
        ideal_passes: trips that their bytes need at least.
    """

    issues: int = 0
    lanes: int = 0
    requests: int = 0
    request_lanes: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared_requests: int = 0
    bank_passes: int = 0
    ideal_passes: int = 0

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


_FIELDS = tuple(f.name for f in fields(Tally))


class Counts:
    """The counts of every instruction of a kernel, over a launch."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.table = np.zeros((len(kernel.code), len(_FIELDS)), np.int64)

    def issued(self, index: int, warps: int, lanes: int) -> None:
        """So many warps issued an instruction, so many lanes took part."""
        self.table[index, 0] += warps
        self.table[index, 1] += lanes

    def global_access(self, index: int, warp: Array, address: Array, size: int) -> None:
        """Lanes of ``warp`` accessed ``size`` bytes each at ``address``; an aligned access lies in one sector."""
        sectors = _distinct(warp, address // SECTOR_BYTES)
        distinct = np.bincount(_distinct(warp, address // size))
        ideal = -(-distinct * size // SECTOR_BYTES)
        self.table[index, 2:6] += (int(np.count_nonzero(distinct)), len(address), len(sectors), int(ideal.sum()))

    def shared_access(self, index: int, warp: Array, lane: Array, address: Array, size: int) -> None:
        """As for global memory; 8 and 16 bytes a lane go through the banks in two and four parts of the warp.

        Source: CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later.
        """
        words = max(1, size // _BANK_BYTES)
        part = warp * words + lane * words // 32
        word = address // _BANK_BYTES
        if words > 1:
            part = np.repeat(part, words)
            word = (word[:, None] + np.arange(words)).ravel()
        groups, of = np.unique(part, return_inverse=True)
        keys = np.unique(of * (1 << 32) + word)
        group, bank = keys >> 32, keys & (_BANKS - 1)
        load = np.bincount(group * _BANKS + bank, minlength=len(groups) * _BANKS).reshape(-1, _BANKS)
        ideal = -(-np.bincount(group) // _BANKS)
        self.table[index, 6:9] += (len(np.unique(warp)), int(load.max(1).sum()), int(ideal.sum()))

    def of(self, index: int) -> Tally:
        """Of one instruction."""
        return Tally(*self.table[index].tolist())

    @property
    def total(self) -> Tally:
        """Of the launch."""
        return Tally(*self.table.sum(0).tolist())

    def by_line(self) -> dict[Line, Tally]:
        """Of each source line that was reached, in the order of the source."""
        lines: dict[Line, Tally] = {}
        for index, instruction in enumerate(self.kernel.code):
            if self.table[index, 0]:
                lines[instruction.line] = lines.get(instruction.line, Tally()) + self.of(index)
        return dict(sorted(lines.items(), key=lambda item: (item[0].file, item[0].number)))


def _distinct(warp: Array, item: Array) -> Array:
    """The warp of each distinct (warp, item), warps counted from 0."""
    shift = int(item.max()).bit_length() if len(item) else 0
    keys = (warp.astype(np.int64) - int(warp.min()) << shift) | item
    ordered = np.sort(keys)
    kept = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return kept >> shift
