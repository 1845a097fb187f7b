"""Time of a step: device and host side by side, eager or as a CUDA graph, and which of them rules. NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from labkit.cost.overheads import Overheads
from labkit.cost.roofline import OpTimes

_F = NDArray[np.float64]


class Bound(StrEnum):
    """What a step would have to do less of to become faster."""

    COMPUTE = "compute"  # arithmetic
    BANDWIDTH = "bandwidth"  # moving bytes
    LAUNCH = "launch"  # starting kernels: the host's time; on the device gaps, filling and draining the chip


@dataclass(frozen=True, eq=False, slots=True)
class StepTimes:
    """Seconds of a step at n shapes, by what rules them. ``compute_s + bandwidth_s + launch_s = step_s``.

    Where the host takes at least as long as the device, kernels run while it launches, and less work in them would save
    nothing: the whole step is ``launch_s``.

    Attributes:
        step_s: from one step to the next.
        busy_s: a kernel runs.
        compute_s: where the device rules, kernels that their arithmetic rules, without what it takes to start them.
        bandwidth_s: where the device rules, kernels that their bytes rule, likewise.
        launch_s: the rest: starting kernels, gaps between them, the whole of a step that the host rules.
    """

    step_s: _F
    busy_s: _F
    compute_s: _F
    bandwidth_s: _F
    launch_s: _F

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The largest part of each step."""
        return tuple(bound_of(*parts) for parts in zip(self.compute_s, self.bandwidth_s, self.launch_s, strict=True))


def bound_of(compute_s: float, bandwidth_s: float, launch_s: float) -> Bound:
    """Which of three parts is the largest; of equal ones the first."""
    parts = {Bound.COMPUTE: compute_s, Bound.BANDWIDTH: bandwidth_s, Bound.LAUNCH: launch_s}
    return max(parts, key=lambda bound: parts[bound])


def step_times(ops: OpTimes, host_ops: int, overheads: Overheads, *, is_graph: bool = False) -> StepTimes:
    """Put a step together.

    The host runs ahead of the device: in the long run a step takes as long as the slower of the two.

        device  kernels, each with its work and its own ramp, and the gaps between them
        host    eager: every op and every launch; as a graph: one replay

    What is not in it: synchronizations (training as it is measured has none), the loader, other work on either side.

    Args:
        ops: device times of the ops.
        host_ops: ops that the host dispatches in a step.
        overheads: times of launches and gaps.
        is_graph: the step is the replay of a CUDA graph.
    """
    kernels, work = ops.kernels.sum(axis=1), ops.work_s
    compute = np.where(ops.arithmetic_s > ops.memory_s, work, 0.0).sum(axis=1)
    bandwidth = work.sum(axis=1) - compute
    busy = compute + bandwidth + kernels * overheads.kernel_s
    device = busy + kernels * (overheads.graph_gap_s if is_graph else overheads.gap_s)
    host = np.full(len(busy), overheads.step_s + overheads.graph_launch_s)
    if not is_graph:
        host = overheads.step_s + host_ops * overheads.op_s + kernels * overheads.launch_s
    step = np.maximum(device, host) if overheads.is_asynchronous else device + host
    hidden = overheads.is_asynchronous & (host >= device)
    compute, bandwidth = np.where(hidden, 0.0, compute), np.where(hidden, 0.0, bandwidth)
    return StepTimes(step, busy, compute, bandwidth, step - compute - bandwidth)
