"""The threads of the blocks that run together: who they are, where they stand, their registers.

Blocks are padded to whole warps, so that thread t is lane ``t % 32`` of warp ``t // 32``; the padding has left from the
beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.gpu.ptx.counts import Counts
from labkit.gpu.ptx.fault import Fault
from labkit.gpu.ptx.memory import GlobalMemory, LocalMemory, SharedMemory
from labkit.gpu.ptx.opcode import DTYPES
from labkit.gpu.ptx.parse import Kernel

Array = NDArray[Any]

#: Which threads execute: their sorted indices, or a slice where all of them do.
Active = Array | slice

WARP = 32
WAITING = 1 << 40  # added to the place of a thread that waits for others
LEFT = 1 << 41  # place of a thread that has returned


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: kernel, dimensions, parameters as bytes, memory, counts."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    params: dict[str, Array]
    memory: GlobalMemory
    dynamic_shared_bytes: int
    counts: Counts

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


class Threads:
    """The state of ``blocks`` blocks from ``first`` on."""

    def __init__(self, launch: Launch, first: int, blocks: int) -> None:
        kernel = launch.kernel
        padded = -(-launch.threads // WARP) * WARP
        self.launch = launch
        self.size = blocks * padded
        self.warps = self.size // WARP
        index = np.arange(self.size, dtype=np.int64)
        self.lane = index % WARP
        self.warp = index // WARP
        self.block_of = index // padded
        self.blocks = blocks
        within = index % padded
        self.at = np.where(within < launch.threads, 0, LEFT)
        self.special = _special_registers(launch, within, first + self.block_of, self.lane)
        self.shared = SharedMemory(blocks, kernel.shared_bytes + launch.dynamic_shared_bytes, self.block_of)
        self.local = LocalMemory(self.size if kernel.local_bytes else 0, kernel.local_bytes)
        self._values: dict[str, Array] = {}
        self._known: dict[str, Array | None] = {}  # which lanes have been written; None once all of them have
        self.doubt: Array | None = None  # which of the lanes that execute read what was never written

    def read(self, name: str, active: Active) -> Array:
        """The values of a register; lanes that have never written it are held in doubt.

        A compiler may read what was never written as long as nothing comes of it, and NVRTC does. So doubt travels with
        the values until it reaches an address, a store, a branch or a vote (``settle``).
        """
        if name not in self._values:
            self._declare(name)
        known = self._known[name]
        if known is not None and not (there := known[active]).all():
            self.doubt = ~there if self.doubt is None else self.doubt | ~there
        return self._values[name][active]

    def write(self, name: str, active: Active, value: Array) -> None:
        """Set a register, and pass on the doubt; the value has its type already, or has the same bits."""
        if name not in self._values:
            self._declare(name)
        self._values[name][active] = value
        known = self._known[name]
        if self.doubt is not None:
            if known is None:
                known = self._known[name] = np.ones(self.size, np.bool_)
            known[active] = ~self.doubt
        elif known is not None:
            if isinstance(active, slice):
                self._known[name] = None
            else:
                known[active] = True

    def settle(self) -> None:
        """What was read is used: it must have been written.

        Raises:
            Fault: a lane is in doubt.
        """
        if self.doubt is not None and self.doubt.any():
            lane = int(np.flatnonzero(self.doubt)[0])
            raise Fault("what is used here comes from a register that was never written", lane)
        self.doubt = None

    def _declare(self, name: str) -> None:
        kind = self.launch.kernel.register_type(name)
        self._values[name] = np.zeros(self.size, DTYPES[str(kind)])
        self._known[name] = np.zeros(self.size, np.bool_)

    def place_of(self, thread: int) -> str:
        """Block and thread as a person writes them."""
        x, y, z = (int(self.special[f"%tid.{c}"][thread]) for c in "xyz")
        bx, by, bz = (int(self.special[f"%ctaid.{c}"][thread]) for c in "xyz")
        return f"block ({bx}, {by}, {bz}) thread ({x}, {y}, {z})"


def _special_registers(launch: Launch, within: Array, block: Array, lane: Array) -> dict[str, Array]:
    width, height, _ = launch.block
    across, down, _ = launch.grid
    values = {
        "%tid.x": within % width,
        "%tid.y": within // width % height,
        "%tid.z": within // (width * height),
        "%ctaid.x": block % across,
        "%ctaid.y": block // across % down,
        "%ctaid.z": block // (across * down),
        "%laneid": lane,
        "%warpid": within // WARP,
        "%lanemask_eq": 1 << lane,
        "%lanemask_lt": (1 << lane) - 1,
        "%lanemask_le": (2 << lane) - 1,
        "%lanemask_gt": (1 << 32) - (2 << lane),
        "%lanemask_ge": (1 << 32) - (1 << lane),
    }
    for axis, threads, blocks in zip("xyz", launch.block, launch.grid, strict=True):
        values[f"%ntid.{axis}"] = np.full(within.shape, threads)
        values[f"%nctaid.{axis}"] = np.full(within.shape, blocks)
    return {name: value.astype(np.uint32) for name, value in values.items()}
