"""CloseLook: a few batches of an epoch, each run under a tracer or a profiler, outside the timed loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from labkit.bench.observers.launches import StepProfile, cupti_name, profile_step, wake_profiler
from labkit.bench.observers.memory import CudaMemory, Traced, traced, traced_figures
from labkit.cost.allocations import tensors_in
from labkit.experiments.representatives import Representatives
from labkit.provenance import Figure, Origin
from labkit.units import format_seconds

_NO_KERNELS = "a CPU runs no device kernels"
_NO_GAP = "a CPU runs no device kernels: see loader_wait_share"
_UNSEEN = "no tracer sees into what torch.compile makes for a CPU: measure without --compile"


class CloseLook:
    """Memory, launches, kernels and the host gap.

    On a CPU the batches are traced before the timed steps, which warms them up as well; the highest peak counts.
    On a GPU memory is watched from the start, and the batches are profiled after the timed steps, when warm.

    Args:
        step: does the work of a batch.
        model: whose parameters and buffers are held meanwhile.
        device: where.
        chosen: the batches.
        compiled: the step goes through ``torch.compile``. No tracer on the host sees into what it makes, and under
            one it compiles nothing: peak and ops of a CPU are absent then.
    """

    def __init__(
        self,
        step: Callable[[Any], object],
        model: nn.Module,
        device: torch.device,
        chosen: Representatives,
        *,
        compiled: bool = False,
    ) -> None:
        """Start watching memory, where there is an allocator to watch."""
        self._compiled = compiled
        self._step, self._model, self._device, self._chosen = step, model, device, chosen
        self._memory: CudaMemory | None = None
        if device.type == "cuda":
            wake_profiler()
            self._memory = CudaMemory(device, (*model.parameters(), *model.buffers()))
        self._traced: dict[int, Traced] = {}

    @property
    def steps(self) -> int:
        """Steps that it has done so far, the largest batch first; they have warmed up what is timed next."""
        return len(self._traced)

    def before(self, batch: Callable[[int], Any]) -> None:
        """Look before the timed steps; ``batch`` gives a batch of the epoch on the device."""
        if self._memory is not None or self._compiled:
            return
        for number in dict.fromkeys((self._chosen.largest, *self._chosen.batches)):
            placed = batch(number)
            held = (*self._model.parameters(), *self._model.buffers(), *tensors_in(placed))
            self._traced[number] = traced(lambda: self._step(placed), held)  # noqa: B023 - called at once

    def after(self, batch: Callable[[int], Any], epoch_s: Figure) -> dict[str, Figure]:
        """Look after the timed steps, and give all figures."""
        if self._memory is None:
            return self._host_figures()
        self._memory.after_run()
        found = self._profile_figures(batch, epoch_s)
        self._memory.close()  # after the last replay
        return self._memory.figures() | found

    def _profile_figures(self, batch: Callable[[int], Any], epoch_s: Figure) -> dict[str, Figure]:
        try:
            profiles = [self._profiled(batch(number)) for number in self._chosen.batches]
        except RuntimeError as error:  # CUPTI that is not there must not cost the times
            if isinstance(error, torch.OutOfMemoryError):
                raise
            why = " ".join(str(error).split())
            return {name: Figure(None, "1", None, why) for name in ("launches", "kernels", "host_gap_share")}
        return profile_figures(profiles, self._chosen, epoch_s)

    def _profiled(self, placed: Any) -> StepProfile:
        self._step(placed)
        return profile_step(lambda: self._step(placed), self._device)

    def _host_figures(self) -> dict[str, Figure]:
        absent = {"kernels": Figure(None, "1", None, _NO_KERNELS), "host_gap_share": Figure(None, "1", None, _NO_GAP)}
        if self._compiled:
            return absent | traced_figures(None, _UNSEEN) | {"launches": Figure(None, "ops", None, _UNSEEN)}
        ops = self._chosen.epoch_sum([self._traced[number].ops for number in self._chosen.batches])
        why = f"ops: aten ops dispatched on the host, a CPU launches no kernels; {self._chosen.note}"
        return {
            # attention over windows takes the most where the longest row is, which need not be where the events are
            **traced_figures(
                max(t.peak_bytes for t in self._traced.values()), f"one step, the highest {self._chosen.note}"
            ),
            "launches": Figure(round(ops), "ops", Origin.MEASURED, why),
            **absent,
        }


def profile_figures(profiles: list[StepProfile], chosen: Representatives, epoch_s: Figure) -> dict[str, Figure]:
    """Launches, kernels and the host gap of an epoch, from a profile of each chosen batch."""
    measured, note = Origin.MEASURED, f"{cupti_name()}, {chosen.note}"
    busy = chosen.epoch_sum([p.busy_s for p in profiles])
    gap = Figure(None, "1", None, "an epoch has no duration to compare with")
    if epoch_s.value:
        why = f"share of the epoch's wall time in which no kernel runs; {note}"
        if busy > epoch_s.value:
            why += (
                f"; by the profiles kernels run for {format_seconds(busy)}, longer than the epoch of "
                f"{format_seconds(epoch_s.value)}: one of the two is off, and this is a bound"
            )
        gap = Figure(max(0.0, 1 - busy / epoch_s.value), "1", measured, why)
    return {
        "launches": Figure(round(chosen.epoch_sum([p.launches for p in profiles])), "1", measured, note),
        "kernels": Figure(round(chosen.epoch_sum([p.kernels for p in profiles])), "1", measured, note),
        "host_gap_share": gap,
    }
