"""Utilization on a CPU: the share of the cores that this process used."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

from labkit.provenance import Figure, Origin

_QUOTA = Path("/sys/fs/cgroup/cpu.max")

#: A border sample may come right after another one; so short an interval says nothing about a maximum.
_LEAST_S = 0.05


@dataclass(frozen=True, slots=True)
class CpuReading:
    """The processor time of this process at one moment.

    Attributes:
        at_s: the moment.
        cpu_s: time on all cores so far, user and system, all threads; no child processes.
    """

    at_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> Self:
        """Read both clocks. Cost: two system calls."""
        return cls(time.monotonic(), time.process_time())


def cpu_summary(samples: Sequence[CpuReading], cores: float | None = None) -> dict[str, Figure]:
    """``utilization`` and ``utilization_max``: processor time over wall time x cores.

    Args:
        samples: from the begin to the end of a run.
        cores: that the process may use; None: :func:`available_cores`.
    """
    cores = available_cores() if cores is None else cores
    what = f"processor time of this process, not its children's, over wall time x {cores:g} cores"
    spans = [(b.at_s - a.at_s, b.cpu_s - a.cpu_s) for a, b in pairwise(samples)]
    wall, used = sum(span for span, _ in spans), sum(cpu for _, cpu in spans)
    if not wall:
        missing = Figure(None, "1", None, "the run has no two samples")
        return {"utilization": missing, "utilization_max": missing}
    peaks = [cpu / span for span, cpu in spans if span >= _LEAST_S] or [used / wall]
    most = Figure(max(peaks) / cores, "1", Origin.MEASURED, f"CPU share between two samples, {what}")
    return {
        "utilization": Figure(used / wall / cores, "1", Origin.MEASURED, f"CPU share: {what}"),
        "utilization_max": most,
    }


def available_cores(quota: Path = _QUOTA) -> float:
    """Cores that this process may use: those it may run on, and no more than its control group is given.

    Args:
        quota: ``cpu.max`` of the control group (cgroup v2): microseconds of a period, or ``max``, then the period.
    """
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if quota.is_file():
        most, period = quota.read_text(encoding="ascii").split()
        if most != "max":
            return min(cores, int(most) / int(period))
    return cores
