"""Theoretical occupancy: how many warps of a kernel fit on a multiprocessor, and what is in the way."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.errors import KernelLaunchError

_WARP = 32
_REGISTER_STEP = 256  # registers are dealt to a warp in this many
_WARP_STEP = 4  # and to warps in groups of this many: one for each quarter of a multiprocessor


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Limits of one multiprocessor of a compute capability.

    Attributes:
        warps: resident at once.
        blocks: resident at once.
        registers: of 32 bits.
        shared_bytes: for all blocks.
        block_shared_bytes: for one block, at most.
        reserved_bytes: of shared memory that the system takes for each block.
        shared_step_bytes: shared memory is dealt in this many.
    """

    warps: int
    blocks: int
    registers: int
    shared_bytes: int
    block_shared_bytes: int
    reserved_bytes: int
    shared_step_bytes: int


#: Source: CUDA C++ Programming Guide 13.0, "Compute Capabilities", "Technical Specifications per Compute Capability";
#: steps of allocation and reserved bytes: ``cuda_occupancy.h`` of CUDA 13.0.
MULTIPROCESSORS: dict[int, Multiprocessor] = {
    75: Multiprocessor(32, 16, 65_536, 64 << 10, 64 << 10, 0, 256),
    80: Multiprocessor(64, 32, 65_536, 164 << 10, 163 << 10, 1024, 128),
    90: Multiprocessor(64, 32, 65_536, 228 << 10, 227 << 10, 1024, 128),
    100: Multiprocessor(64, 32, 65_536, 228 << 10, 227 << 10, 1024, 128),
    120: Multiprocessor(48, 24, 65_536, 100 << 10, 99 << 10, 1024, 128),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What fits.

    Attributes:
        blocks: on one multiprocessor at once.
        warps: of them.
        share: of the warps that could be resident.
        limit: what keeps more from fitting: "warps", "blocks", "registers" or "shared memory".
    """

    blocks: int
    warps: int
    share: float
    limit: str


def occupancy(arch: int, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Blocks of a kernel that are resident on a multiprocessor.

    Args:
        arch: compute capability without the dot, a key of ``MULTIPROCESSORS``.
        threads: of a block.
        registers: of a thread.
        shared_bytes: of a block, static and dynamic.

    Raises:
        KernelLaunchError: an architecture without limits here, or a block that does not fit at all.
    """
    if arch not in MULTIPROCESSORS:
        raise KernelLaunchError(f"the limits of sm_{arch} are not known: expected one of {sorted(MULTIPROCESSORS)}")
    limits = MULTIPROCESSORS[arch]
    warps = -(-threads // _WARP)
    of_warp = -(-max(1, registers) * _WARP // _REGISTER_STEP) * _REGISTER_STEP
    quarters = limits.registers // _WARP_STEP // of_warp * _WARP_STEP
    asked = shared_bytes + limits.reserved_bytes
    of_block = -(-asked // limits.shared_step_bytes) * limits.shared_step_bytes
    fits = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": quarters // warps,
        "shared memory": limits.shared_bytes // of_block if of_block else limits.blocks,
    }
    blocks = min(fits.values())
    if blocks < 1 or shared_bytes > limits.block_shared_bytes:
        raise KernelLaunchError(
            f"a block of {threads} threads, {registers} registers a thread and {shared_bytes} bytes of shared memory "
            f"does not fit on a multiprocessor of sm_{arch}"
        )
    limit = next(name for name, most in fits.items() if most == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / limits.warps, limit)
