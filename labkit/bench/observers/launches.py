"""Launches and kernels of a step as CUPTI saw them, and how long any kernel was running."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]  # it is there, and not in __all__
from torch.profiler import ProfilerActivity, profile

#: Calls of the runtime and the driver that hand work to the GPU. A graph launch is one, whatever it replays.
#: Source: CUDA Runtime API, "Execution Control" and "Graph Management"; CUDA Driver API, likewise.
_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchCooperativeKernel", "cudaGraphLaunch", "cuGraphLaunch")
#: Work on the device that is no kernel.
_COPIES = ("Memcpy", "Memset")
#: Packages that torch takes CUPTI from.
_CUPTI = ("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu13", "nvidia-cuda-cupti-cu12", "nvidia-cuda-cupti-cu11")


class ProfilerEvent(Protocol):
    """What is read of an event of torch.profiler."""

    def name(self) -> str:
        """Of the op, the call or the kernel."""

    def device_type(self) -> Any:
        """Where it ran."""

    def start_ns(self) -> int:
        """When it began."""

    def duration_ns(self) -> int:
        """How long it took."""

    def is_user_annotation(self) -> bool:
        """It is a range that somebody named. Kineto shows it on the device too, over kernels and gaps alike."""


@dataclass(frozen=True, slots=True)
class StepProfile:
    """One step.

    Attributes:
        launches: calls that handed work to the GPU; a graph replay is one.
        kernels: kernels that ran; a graph of n kernels is n.
        busy_s: time in which at least one kernel was running.
    """

    launches: int
    kernels: int
    busy_s: float


def wake_profiler() -> None:
    """Open and close the profiler once, before any CUDA graph is captured.

    CUPTI that is started for the first time after a capture has crashed on the replay of that graph. Where it
    cannot be opened there is a warning, and ``profile_step`` gives the reason later.

    Source: PyTorch issue 75504.
    """
    try:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True):
            pass
    except RuntimeError as error:
        warnings.warn(f"torch.profiler cannot be opened: {error}", stacklevel=2)


def cupti_name() -> str:
    """CUPTI with its version: how long kernels of a graph seem to run depends on it."""
    for package in _CUPTI:
        try:
            return f"CUPTI {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    return "CUPTI" if torch.version.cuda is None else f"CUPTI of CUDA {torch.version.cuda}"


def profile_step(call: Callable[[], object], device: torch.device) -> StepProfile:
    """Run one warmed step under torch.profiler (CUPTI).

    Raises:
        RuntimeError: the profiler saw no kernel at all: CUPTI is missing, or another profiler has it.

    Cost: the step is slower under the profiler; how long kernels run is not changed, the gaps between them are.
    """
    torch.cuda.synchronize(device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as recorded:
        call()
        torch.cuda.synchronize(device)
    results: Any = recorded.profiler.kineto_results if recorded.profiler else None
    found = summed(results.events() if results is not None else ())
    if not found.kernels:
        raise RuntimeError("torch.profiler saw no kernel: CUPTI is missing, or another profiler is using the GPU")
    return found


def summed(events: Iterable[ProfilerEvent]) -> StepProfile:
    """Launches, kernels and busy time among the events of a profile."""
    launches, starts, stops = 0, [], []
    for event in events:
        if event.is_user_annotation():
            continue  # such as Optimizer.step#SGD.step: no kernel, and the device may be idle in it
        name = event.name()
        if event.device_type() == DeviceType.CPU:
            launches += name.startswith(_LAUNCHES)
        elif not name.startswith(_COPIES):
            starts.append(event.start_ns())
            stops.append(event.start_ns() + event.duration_ns())
    return StepProfile(launches, len(starts), covered(starts, stops) * 1e-9)


def covered(starts: Iterable[int], stops: Iterable[int]) -> int:
    """Length of the union of intervals, whose kernels may overlap on several streams."""
    begin, end = np.array(list(starts), dtype=np.int64), np.array(list(stops), dtype=np.int64)
    if not begin.size:
        return 0
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    reached = np.maximum.accumulate(end)
    fresh = np.concatenate([begin[:1], np.maximum(begin[1:], reached[:-1])])
    return int(np.maximum(end - fresh, 0).sum())
