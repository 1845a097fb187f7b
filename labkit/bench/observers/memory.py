"""Memory of a step: what a CUDA device holds, as three numbers; on a CPU the traced peak of tensor allocations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.bench.observers.base import Observer
from labkit.cost.allocations import HELD, AllocationTrace
from labkit.provenance import Figure, Origin

_NO_ALLOCATOR = "a CPU has no caching allocator: the traced peak of tensor allocations is in peak_bytes"
_FRAGMENTATION = "(reserved - allocated) / reserved, each at its own peak"


class CudaMemory(Observer):
    """Peaks of the caching allocator and what the device has in use, from when it is made.

    Allocated, reserved and used are three numbers: tensors; what the allocator holds for them; all of the card, the
    CUDA context and other processes included. It is made before the warm-up, so that the largest batch counts.

    Source: PyTorch, "CUDA semantics", memory management.
    """

    def __init__(self, device: torch.device) -> None:
        """Forget what came before on this device: its cached blocks are given back, its peaks reset."""
        self._device = device
        self._used = 0
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)

    def after_run(self) -> None:
        """Look at the whole card."""
        free, total = torch.cuda.mem_get_info(self._device)
        self._used = total - free

    def figures(self) -> dict[str, Figure]:
        """``peak_bytes``, ``allocated_bytes``, ``reserved_bytes``, ``device_used_bytes``, ``fragmentation``."""
        allocated = torch.cuda.max_memory_allocated(self._device)
        reserved = torch.cuda.max_memory_reserved(self._device)
        return memory_figures(allocated, reserved, self._used)


def memory_figures(allocated: int, reserved: int, used: int) -> dict[str, Figure]:
    """The memory figures of a CUDA device from the peaks of its allocator and the bytes in use after the run."""
    found = {
        "peak_bytes": Figure(allocated, "bytes", Origin.MEASURED, "most bytes of tensors at one time (allocated)"),
        "allocated_bytes": Figure(allocated, "bytes", Origin.MEASURED, "peak of the allocator's tensors"),
        "reserved_bytes": Figure(reserved, "bytes", Origin.MEASURED, "peak of what the allocator holds"),
        "device_used_bytes": Figure(used, "bytes", Origin.MEASURED, "of the whole card, other processes included"),
        "fragmentation": Figure(None, "1", None, f"nothing was reserved; {_FRAGMENTATION}"),
    }
    if reserved:
        found["fragmentation"] = Figure((reserved - allocated) / reserved, "1", Origin.MEASURED, _FRAGMENTATION)
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
    return {
        "peak_bytes": Figure(None, "bytes", None, what)
        if peak_bytes is None
        else Figure(peak_bytes, "bytes", Origin.MEASURED, why),
        **none,
        "device_used_bytes": Figure(None, "bytes", None, "there is no device beside the host"),
        "fragmentation": Figure(None, "1", None, _NO_ALLOCATOR),
    }
