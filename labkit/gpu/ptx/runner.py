"""The door: run a kernel of a PTX text on arrays, and get its counts."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.errors import KernelLaunchError
from labkit.gpu.ptx.bind import bind
from labkit.gpu.ptx.counts import Counts
from labkit.gpu.ptx.memory import arguments_as_bytes
from labkit.gpu.ptx.parse import Kernel
from labkit.gpu.ptx.schedule import Schedule
from labkit.gpu.ptx.threads import Launch, Threads

#: Threads that run side by side; more of them make larger arrays and fewer of them.
_SIDE_BY_SIDE = 16_384
_MAX_STEPS = 5_000_000


def run(
    kernel: Kernel,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[object],
    *,
    shared_bytes: int = 0,
    max_steps: int = _MAX_STEPS,
) -> Counts:
    """Launch a kernel on the CPU and wait for it.

    Blocks run in groups, one group after the other: a kernel in which a block waits for a later one does not end.

    Args:
        kernel: of ``parse``.
        grid: blocks along x, y, z; 1 where left out.
        block: threads along x, y, z.
        args: C-contiguous arrays for pointers (changed in place; a read-only array must not be stored to), NumPy
            scalars of the exact size for numbers, None for a null pointer, bytes for a struct.
        shared_bytes: dynamic shared memory of a block.
        max_steps: instructions that a group of blocks may execute.

    Raises:
        PtxError: what a GPU would not survive or leave undefined (out of bounds, misaligned, uninitialised, deadlock,
            a bad mask); the arrays are then as they were.
        PtxUnsupportedError: an instruction or operand that the runner does not know; nothing ran.
        KernelArgumentError: arguments that do not fit the parameters.
        KernelLaunchError: a grid or block that no device would take.

    Cost: about 20 ns for each lane and instruction where most lanes agree, 50 us for each instruction where few do.
    """
    shape, threads = _three(grid, "grid"), _three(block, "block")
    count = threads[0] * threads[1] * threads[2]
    if count > (kernel.max_threads or 1024):
        raise KernelLaunchError(
            f"a block of {kernel.name} has at most {kernel.max_threads or 1024} threads, got {count}"
        )
    params, memory = arguments_as_bytes(kernel.params, args, kernel.variables)
    counts = Counts(kernel)
    launch = Launch(kernel, shape, threads, params, memory, shared_bytes, counts)
    steps = bind(kernel)
    together = max(1, _SIDE_BY_SIDE // count)
    for first in range(0, launch.blocks, together):
        Schedule(Threads(launch, first, min(together, launch.blocks - first)), steps, max_steps).run()
    memory.store_back()
    return counts


def _three(sizes: Sequence[int], what: str) -> tuple[int, int, int]:
    padded = [int(s) for s in sizes] + [1] * (3 - len(sizes))
    if len(padded) != 3 or min(padded) < 1:
        raise KernelLaunchError(f"a {what} has one to three sizes of at least 1, got {tuple(sizes)}")
    return padded[0], padded[1], padded[2]
