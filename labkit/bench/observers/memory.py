"""Memory of a step: what a CUDA device holds, as three numbers; on a CPU the traced peak of tensor allocations."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.bench.observers.base import Observer
from labkit.cost.allocations import HELD, AllocationTrace, storages_of
from labkit.cost.memory import CUDA_BLOCK_BYTES
from labkit.provenance import Figure, Origin
from labkit.units import format_bytes

_NO_ALLOCATOR = "a CPU has no caching allocator: the traced peak of tensor allocations is in peak_bytes"
_FRAGMENTATION = "(reserved - allocated) / reserved, each at its own peak"


class CudaMemory(Observer):
    """Peaks of the caching allocator and what the device has in use, from when it is made.

    Allocated, reserved and used are three numbers: tensors; what the allocator holds for them; all of the card, the
    CUDA context and other processes included. It is made before the warm-up, so that the largest batch counts.

    cuBLAS takes a workspace of its own for every thread and stream (32 MiB each on Hopper) from the same allocator and
    keeps it. It is freed at the start, or a run would have those of the run before in its peak; at the end it is freed
    and counted.

    Args:
        device: a CUDA device.
        held: tensors on it that belong to what is watched, such as parameters; all others that this process has are
            somebody else's, and no part of ``peak_bytes``.

    Source: PyTorch, "CUDA semantics", memory management and cuBLAS workspaces.
    """

    def __init__(self, device: torch.device, held: Iterable[Tensor] = ()) -> None:
        """Forget what came before on this device: workspaces and cached blocks are given back, peaks reset."""
        self._device = device
        self._used = self._allocated = self._reserved = self._workspaces = 0
        gc.collect()  # what only a cycle holds, such as the traceback of a run that failed
        _free_workspaces()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        self._others = max(0, torch.cuda.memory_allocated(device) - allocator_bytes(held))

    def after_run(self) -> None:
        """Look at the peaks and at the whole card."""
        free, total = torch.cuda.mem_get_info(self._device)
        self._used = total - free
        self._allocated = torch.cuda.max_memory_allocated(self._device)
        self._reserved = torch.cuda.max_memory_reserved(self._device)

    def close(self) -> None:
        """Free and count the workspaces. No CUDA graph of the run may be replayed after this: it may know one."""
        before = torch.cuda.memory_allocated(self._device)
        _free_workspaces()
        self._workspaces = before - torch.cuda.memory_allocated(self._device)

    def figures(self) -> dict[str, Figure]:
        """Those of ``memory_figures``."""
        return memory_figures(
            self._allocated, self._reserved, self._used, others=self._others, workspaces=self._workspaces
        )


def allocator_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes that CUDA's allocator counts for these tensors; those that share a storage count once."""
    sizes = {s.data_ptr(): s.nbytes() for tensor in tensors for s in storages_of(tensor)}
    return sum(-(-size // CUDA_BLOCK_BYTES) * CUDA_BLOCK_BYTES for size in sizes.values())


def _free_workspaces() -> None:
    torch._C._cuda_clearCublasWorkspaces()  # no public name; torch.compile calls it too


def memory_figures(
    allocated: int, reserved: int, used: int, *, others: int = 0, workspaces: int = 0
) -> dict[str, Figure]:
    """The memory figures of a CUDA device.

    Args:
        allocated: peak of the allocator's tensors.
        reserved: peak of what the allocator holds.
        used: bytes in use on the whole card after the run.
        others: part of both peaks that was there before, and is not of what was run.
        workspaces: bytes of cuBLAS's workspaces, part of both peaks.

    Returns:
        ``peak_bytes``, ``allocated_bytes``, ``reserved_bytes``, ``device_used_bytes``, ``fragmentation``,
        ``workspace_bytes``.
    """
    measured, peak = Origin.MEASURED, "most bytes of tensors at one time (allocated), cuBLAS workspaces included"
    if others:
        peak += f"; without {format_bytes(others)} that this process held before"
    found = {
        "peak_bytes": Figure(allocated - others, "bytes", measured, peak),
        "allocated_bytes": Figure(allocated, "bytes", measured, "peak of the allocator's tensors, of the process"),
        "reserved_bytes": Figure(reserved, "bytes", measured, "peak of what the allocator holds, of the process"),
        "device_used_bytes": Figure(used, "bytes", measured, "of the whole card, other processes included"),
        "fragmentation": Figure(None, "1", None, f"nothing was reserved; {_FRAGMENTATION}"),
        "workspace_bytes": Figure(workspaces, "bytes", measured, "cuBLAS workspaces, part of the peaks"),
    }
    if reserved:
        found["fragmentation"] = Figure((reserved - allocated) / reserved, "1", measured, _FRAGMENTATION)
    return found


@dataclass(frozen=True, slots=True)
class Traced:
    """One step, traced.

    Attributes:
        peak_bytes: most bytes of tensors at one time, what was held before included.
        ops: aten ops that were dispatched, forward, backward and optimizer.
    """

    peak_bytes: int
    ops: int


def traced(call: Callable[[], object], held: Iterable[Tensor]) -> Traced:
    """Run one step under an allocation trace.

    Args:
        call: the step.
        held: tensors that exist already and count: parameters, gradients, the batch.

    Cost: that of the step, and some ten microseconds an op; never inside a timed loop.
    """
    with AllocationTrace() as trace:
        trace.hold(held)
        call()
    return Traced(trace.peak_bytes, sum(op != HELD for op in trace.ops))


def traced_figures(peak_bytes: int | None, what: str) -> dict[str, Figure]:
    """The memory figures of a CPU: the traced peak, and why the others do not exist.

    Args:
        peak_bytes: of a traced step; None where none could be traced.
        what: the step that was traced, or why there is none.
    """
    why = f"traced peak of tensor allocations in {what}: parameters, gradients, batch and activations"
    none = {name: Figure(None, "bytes", None, _NO_ALLOCATOR) for name in ("allocated_bytes", "reserved_bytes")}
    none["workspace_bytes"] = Figure(None, "bytes", None, "a CPU has no cuBLAS")
    return {
        "peak_bytes": Figure(None, "bytes", None, what)
        if peak_bytes is None
        else Figure(peak_bytes, "bytes", Origin.MEASURED, why),
        **none,
        "device_used_bytes": Figure(None, "bytes", None, "there is no device beside the host"),
        "fragmentation": Figure(None, "1", None, _NO_ALLOCATOR),
    }
