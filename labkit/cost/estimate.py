"""Modelled figures of an epoch: launches, kernels, peak memory, and on a GPU time and busy share. NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.cost.devices import Gpu, Precision
from labkit.cost.memory import CUDA_BLOCK_BYTES, peak_bytes
from labkit.cost.mix import BatchMix
from labkit.cost.overheads import ASSUMED, Overheads
from labkit.cost.roofline import op_times
from labkit.cost.step_cost import StepCost
from labkit.cost.step_time import Bound, bound_of, step_times


@dataclass(frozen=True, slots=True)
class Launched:
    """What an epoch comes to on any CUDA device.

    Attributes:
        steps: batches.
        launches: host-side launches of an epoch; the replay of a graph is one.
        kernels: device kernels of an epoch.
        flops: operations of an epoch.
        moved_bytes: bytes read and written by kernels.
        peak_bytes: most bytes of tensors at one time, in blocks of the CUDA allocator; without batches 0.
    """

    steps: float
    launches: float
    kernels: float
    flops: float
    moved_bytes: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Timed:
    """What an epoch comes to on one GPU. ``useful_s + padding_s + gap_s = time_s``.

    Attributes:
        time_s: an epoch.
        step_s: a step, the mean of all.
        busy_share: share of the time in which a kernel runs (time-active; not how much of the chip it uses).
        bound: what rules the largest part of the time: with less of it the epoch would become faster.
        compute_s, bandwidth_s, launch_s: the time by what rules it (``StepTimes``); they add up to ``time_s``.
        useful_s: kernels run, for real events.
        padding_s: kernels run, for padding: their time by its share of the slots.
        gap_s: no kernel runs.
    """

    time_s: float
    step_s: float
    busy_share: float
    bound: Bound
    compute_s: float
    bandwidth_s: float
    launch_s: float
    useful_s: float
    padding_s: float
    gap_s: float

    @property
    def bound_share(self) -> float:
        """Share of the time that the bound rules."""
        return max(self.compute_s, self.bandwidth_s, self.launch_s) / self.time_s


def launched(cost: StepCost, mix: BatchMix, *, is_graph: bool = False) -> Launched:
    """Launches, kernels, work and peak memory of an epoch.

    Args:
        cost: of a step in the layout of the policy.
        mix: the batches of the policy.
        is_graph: each step is the replay of a CUDA graph.
    """
    flops, read, written, kernels = mix.counts @ cost.totals(mix.shapes) if len(mix.shapes) else np.zeros(4)
    steps = float(mix.counts.sum())
    peak = peak_bytes(cost, mix.largest, rounding=CUDA_BLOCK_BYTES).max(initial=0.0)
    launches = steps if is_graph else float(kernels)
    return Launched(steps, launches, float(kernels), float(flops), float(read + written), int(np.ceil(peak)))


def timed(
    cost: StepCost,
    mix: BatchMix,
    gpu: Gpu,
    *,
    padding_ratio: float,
    is_graph: bool = False,
    precision: Precision = Precision.FLOAT32,
    overheads: Overheads = ASSUMED,
) -> Timed | None:
    """Time and busy share of an epoch on a GPU; None without batches.

    Args:
        cost: of a step in the layout of the policy.
        mix: the batches of the policy.
        gpu: which.
        padding_ratio: of the policy: that share of the busy time goes to padding.
        is_graph: each step is the replay of a CUDA graph.
        precision: of matrix products.
        overheads: times of launches and gaps.

    Raises:
        GpuError: the GPU lacks the precision.
    """
    if not len(mix.shapes):
        return None
    ops = op_times(cost, mix.shapes, gpu, precision, overheads)
    times = step_times(ops, cost.ops_per_step, overheads, is_graph=is_graph)
    total, busy, compute, bandwidth, launch = (
        float(mix.counts @ part)
        for part in (times.step_s, times.busy_s, times.compute_s, times.bandwidth_s, times.launch_s)
    )
    return Timed(
        time_s=total,
        step_s=total / float(mix.counts.sum()),
        busy_share=busy / total,
        bound=bound_of(compute, bandwidth, launch),
        compute_s=compute,
        bandwidth_s=bandwidth,
        launch_s=launch,
        useful_s=busy * (1 - padding_ratio),
        padding_s=busy * padding_ratio,
        gap_s=total - busy,
    )
