"""Fits overheads to timings: straight lines through what was measured, and what each line leaves over. NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from labkit.cost.devices import Gpu
from labkit.cost.overheads import ASSUMED, Overheads
from labkit.errors import CostError


class Probe(StrEnum):
    """What a timing says something about."""

    HOST_VIEWS = "views on the host"  # x: views made; no kernel
    HOST_OPS = "ops on the host"  # x: ops dispatched, one kernel each, without waiting for the device
    DEVICE_KERNELS = "kernels in a queue"  # x: kernels with next to nothing to do, one after another on the device
    GRAPH_KERNELS = "kernels in a graph"  # x: kernels with next to nothing to do, in one graph, on the device
    GRAPH_REPLAYS = "replays on the host"  # x: replays with the copies of a batch, without waiting for the device
    COPY = "bytes moved"  # x: bytes read and written by one kernel, far more than the cache holds
    COPY_IN_CACHE = "bytes moved in the cache"  # x: bytes, at most half the cache
    PRODUCT = "operations"  # x: operations of one matrix product whose tiles fit


class Timing(NamedTuple):
    """One measurement: the shortest time of ``x`` of something; what makes it longer is other work."""

    probe: Probe
    x: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """``seconds = start + slope * x`` through the timings of one probe.

    Attributes:
        probe: of what.
        start: seconds of nothing.
        slope: seconds of one more.
        residuals: measured over fitted, minus one, of each timing: what the line does not explain.
    """

    probe: Probe
    start: float
    slope: float
    residuals: tuple[float, ...]

    @property
    def worst(self) -> float:
        """The largest residual, as a share of the fitted time."""
        return max(map(abs, self.residuals))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted overheads and the lines they come from.

    Attributes:
        overheads: with ``source='fitted'``; what no probe told is as assumed.
        lines: one a probe.
    """

    overheads: Overheads
    lines: tuple[Line, ...]


def calibrate(timings: Sequence[Timing], device: Gpu, *, is_asynchronous: bool = True) -> Calibration:
    """Fit what the data sheet does not say.

    Args:
        timings: at least two of each probe, at different ``x``.
        device: whose peaks the shares are of; of a CPU a ``Gpu`` with the peaks that were measured.
        is_asynchronous: the host runs ahead of the device; False on a CPU, where an op's whole time is the host's and
            that of views is told apart by ``HOST_VIEWS``.

    Raises:
        CostError: fewer than two timings of a probe, or a time that does not grow with ``x``.
    """
    probes = dict.fromkeys(timing.probe for timing in timings)
    lines = {probe: _line(probe, [t for t in timings if t.probe is probe]) for probe in probes}
    found: dict[str, float] = {}
    if Probe.HOST_VIEWS in lines:
        found["op_s"] = lines[Probe.HOST_VIEWS].slope
    if Probe.HOST_OPS in lines:
        found["launch_s"] = max(0.0, lines[Probe.HOST_OPS].slope - found.get("op_s", 0.0))
    if Probe.GRAPH_KERNELS in lines:
        found["kernel_s"] = max(0.0, lines[Probe.GRAPH_KERNELS].slope - ASSUMED.graph_gap_s)
        found["graph_gap_s"] = lines[Probe.GRAPH_KERNELS].slope - found["kernel_s"]
    if Probe.GRAPH_REPLAYS in lines:
        found["graph_launch_s"] = lines[Probe.GRAPH_REPLAYS].slope
    if Probe.DEVICE_KERNELS in lines:
        kernel = found.setdefault("kernel_s", max(0.0, lines[Probe.DEVICE_KERNELS].slope - ASSUMED.gap_s))
        found["gap_s"] = max(0.0, lines[Probe.DEVICE_KERNELS].slope - kernel)
    if Probe.COPY in lines:
        found["bandwidth_share"] = 1 / (lines[Probe.COPY].slope * device.bandwidth_bytes_per_s)
    if Probe.COPY_IN_CACHE in lines and Probe.COPY in lines:
        found["l2_speedup"] = lines[Probe.COPY].slope / lines[Probe.COPY_IN_CACHE].slope
    if Probe.PRODUCT in lines:
        found["flops_share"] = 1 / (lines[Probe.PRODUCT].slope * device.float32_flops)
    if not is_asynchronous:  # an op is dispatched and run by the same thread: there are no launches, ramps or gaps
        found |= {"kernel_s": 0.0, "gap_s": 0.0, "graph_gap_s": 0.0}
    overheads = replace(ASSUMED, **found, is_asynchronous=is_asynchronous, source="fitted")
    return Calibration(overheads, tuple(lines.values()))


def _line(probe: Probe, timings: Sequence[Timing]) -> Line:
    """Least squares of the relative errors, so that short times count as much as long ones; none starts below 0 s."""
    x, seconds = (np.array([getattr(t, name) for t in timings], dtype=np.float64) for name in ("x", "seconds"))
    if len(set(x.tolist())) < 2:
        raise CostError(f"{probe}: a line needs timings at two places or more, got {len(timings)} at x = {x.tolist()}.")
    design = np.stack([1 / seconds, x / seconds], axis=1)
    scale = np.abs(design).max(axis=0)  # bytes and seconds are sixteen orders of magnitude apart
    start, slope = np.linalg.lstsq(design / scale, np.ones(len(x)), rcond=None)[0] / scale
    if slope <= 0:
        raise CostError(
            f"{probe}: the time does not grow with x ({seconds.tolist()} s at {x.tolist()}): measure again."
        )
    if start < 0:  # the best line through 0 is another one
        start, slope = 0.0, float(design[:, 1].sum() / np.square(design[:, 1]).sum())
    fitted = start + slope * x
    return Line(probe, float(start), float(slope), tuple((seconds / fitted - 1).tolist()))
