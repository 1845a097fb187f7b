"""How long an op takes on a batch: measured by CUDA events where there is a GPU, recorded runs, and memory's floor."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.bench.timing import clock_of, time_steps
from labkit.cost.devices import Gpu
from labkit.errors import LabkitError
from labkit.experiments.kernel_workload import CALLS, Workload
from labkit.experiments.recorded import recorded_runs
from labkit.provenance import Figure, Origin

_WARM_UP, _SECONDS = 5, 1.0


#: What recorded runs call the op that a workload calls.
_RECORDED = {"segment_pool": "segment_sum", "din_attention": "attention_pool"}


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """The same op in a recorded run, on lengths of that run.

    Attributes:
        lengths: law they were drawn by.
        time_s: median; its reason says device, date, commit, rows and events.
        share_of_copy: of the copy bandwidth that was measured there.
    """

    lengths: str
    time_s: Figure
    share_of_copy: Figure


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Time of one call of an op.

    Attributes:
        call: which one.
        rows, events: of the batch.
        time_s: median of the measured calls; None with the reason where there is no GPU.
        spread_s: distance of their quartiles.
        device: that was measured, or None.
        bytes_moved: that must be read and written at the least.
        floor_s: those bytes at the bandwidth of the chosen GPU's data sheet.
        gpu: its name.
        recorded: the newest recorded run that has this op; empty where none has.
    """

    call: str
    rows: int
    events: int
    time_s: Figure
    spread_s: Figure
    device: str | None
    bytes_moved: Figure
    floor_s: Figure
    gpu: str
    recorded: tuple[RecordedTime, ...] = ()

    @property
    def as_json(self) -> dict[str, Any]:
        """Values, with origins and reasons beside them."""
        figures = {name: getattr(self, name) for name in ("time_s", "spread_s", "bytes_moved", "floor_s")}
        return {
            **{name: getattr(self, name) for name in ("call", "rows", "events", "device", "gpu")},
            **{name: figure.value for name, figure in figures.items()},
            "provenance": {name: None if f.origin is None else str(f.origin) for name, f in figures.items()},
            "reason": {name: f.reason for name, f in figures.items() if f.reason},
            "recorded": [
                {"lengths": one.lengths, "time_s": one.time_s.value, "share_of_copy": one.share_of_copy.value}
                | {"provenance": "recorded", "reason": one.time_s.reason}
                for one in self.recorded
            ],
        }


def time_kernel(workload: Workload, gpu: Gpu, folder: Path | None = None, *, measure: bool = True) -> KernelTime:
    """Time the shipped kernels of an op on the GPU at hand; without one the time is null and the floor is there.

    Args:
        workload: the batch.
        gpu: whose bandwidth sets the floor.
        folder: of recorded runs; None: those that labkit brings.
        measure: on the GPU at hand; False leaves that to the button.

    Raises:
        DataFileError: a recorded run that is none.

    Cost: a second of the GPU, and compiling the kernels once; nothing without one.
    """
    time_s, spread_s, device = _measured(workload, measure)
    moved, reason = workload.floor_bytes, f"{workload.op} reads and writes each array once, at the data sheet's speed"
    return KernelTime(
        call=CALLS[workload.op],
        rows=len(workload.lengths),
        events=workload.events,
        time_s=time_s,
        spread_s=spread_s,
        device=device,
        bytes_moved=Figure(moved, "bytes", Origin.EXACT),
        floor_s=Figure(moved / gpu.bandwidth_bytes_per_s, "s", Origin.MODELLED, reason),
        gpu=gpu.name,
        recorded=recorded_times(workload.op, folder),
    )


def recorded_times(op: str, folder: Path | None = None) -> tuple[RecordedTime, ...]:
    """The times of an op in the newest recorded run that has it; runs in ``folder``, None: those that labkit brings.

    Raises:
        DataFileError: a file there is no recorded run.
    """
    name = _RECORDED.get(op, op)
    for run in recorded_runs(folder):
        times = run.op_times()
        found = [
            RecordedTime(lengths, figures["median_s"], figures["share_of_copy"])
            for (one, lengths), figures in times.items()
            if one == name
        ]
        if found:
            return tuple(found)
    return ()


def _measured(workload: Workload, measure: bool) -> tuple[Figure, Figure, str | None]:
    import torch

    if not torch.cuda.is_available():
        missing = Figure(None, "s", None, "torch finds no CUDA device here: `labkit doctor` says why")
        return missing, missing, None
    if not measure:
        missing = Figure(None, "s", None, "not measured yet on these lengths: press Time")
        return missing, missing, None
    device = torch.device("cuda", torch.cuda.current_device())
    try:
        call = workload.prepared(str(device))
        timing = time_steps(
            lambda _: call(),
            itertools.repeat(None),
            clock=clock_of(device),
            warm_up=[None] * _WARM_UP,
            seconds=_SECONDS,
        )
    except (LabkitError, torch.OutOfMemoryError) as error:
        missing = Figure(None, "s", None, str(error).splitlines()[0])
        return missing, missing, torch.cuda.get_device_name(device)
    spread = timing.spread_s
    return (
        Figure(timing.median_s, "s", Origin.MEASURED, f"median of {timing.n} calls by CUDA events, L2 cache warm"),
        Figure(spread, "s", None if spread is None else Origin.MEASURED, None if spread else "of a single call"),
        torch.cuda.get_device_name(device),
    )
