"""Fits recover what was planted, and say what they leave over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labkit.cost.calibration import Probe, Timing, calibrate
from labkit.cost.devices import GPUS
from labkit.cost.overheads import ASSUMED, Overheads
from labkit.errors import CostError

H100 = GPUS["H100"]
PLANTED = Overheads(
    op_s=3e-6,
    launch_s=2e-6,
    step_s=ASSUMED.step_s,
    kernel_s=1.2e-6,
    gap_s=0.7e-6,
    graph_launch_s=8e-6,
    graph_gap_s=ASSUMED.graph_gap_s,
    bandwidth_share=0.9,
    flops_share=0.7,
    l2_speedup=2.5,
    source="fitted",
)


def timings(p: Overheads) -> list[Timing]:
    """What a device with these overheads would be measured at."""
    bandwidth, peak = H100.bandwidth_bytes_per_s * p.bandwidth_share, H100.float32_flops * p.flops_share
    found = []
    for n in (20, 100, 400):
        found += [
            Timing(Probe.HOST_VIEWS, n, 1e-7 + n * p.op_s),
            Timing(Probe.HOST_OPS, n, 1e-7 + n * (p.op_s + p.launch_s)),
            Timing(Probe.DEVICE_KERNELS, n, n * (p.kernel_s + p.gap_s)),
            # on the device, behind a queue: what starts it is not the host's time of a replay
            Timing(Probe.GRAPH_KERNELS, n, 1e-6 + n * (p.kernel_s + p.graph_gap_s)),
            Timing(Probe.GRAPH_REPLAYS, n, 1e-7 + n * p.graph_launch_s),
        ]
    for size in (1e8, 2e8, 4e8):
        found += [
            Timing(Probe.COPY, size, 2e-6 + size / bandwidth),
            Timing(Probe.COPY_IN_CACHE, size / 40, 2e-6 + size / 40 / (bandwidth * p.l2_speedup)),
            Timing(Probe.PRODUCT, size * 100, 3e-6 + size * 100 / peak),
        ]
    return found


def test_planted_overheads_are_recovered() -> None:
    found = calibrate(timings(PLANTED), H100)
    for name in Overheads.__dataclass_fields__:
        planted, fitted = getattr(PLANTED, name), getattr(found.overheads, name)
        assert fitted == (pytest.approx(planted, rel=1e-6) if isinstance(planted, float) else planted), name
    assert {line.probe for line in found.lines} == set(Probe)
    assert max(line.worst for line in found.lines) < 1e-9


def test_noise_stays_in_the_residuals() -> None:
    random = np.random.default_rng(0)
    noisy = [t._replace(seconds=t.seconds * random.uniform(0.95, 1.05)) for t in timings(PLANTED)]
    found = calibrate(noisy, H100)
    assert found.overheads.bandwidth_share == pytest.approx(PLANTED.bandwidth_share, rel=0.2)
    assert 0.001 < max(line.worst for line in found.lines) < 0.1


def test_what_no_probe_tells_stays_as_assumed() -> None:
    copies = [t for t in timings(PLANTED) if t.probe is Probe.COPY]
    found = calibrate(copies, H100).overheads
    assert found == replace(ASSUMED, bandwidth_share=found.bandwidth_share, source="fitted")
    assert found.bandwidth_share == pytest.approx(0.9)


def test_a_line_that_would_start_below_zero_is_fitted_through_zero() -> None:
    copies = [Timing(Probe.COPY, 2e8, 0.5e-4), Timing(Probe.COPY, 4e8, 2e-4), Timing(Probe.COPY, 8e8, 4e-4)]
    (line,) = calibrate(copies, H100).lines
    assert line.start == 0
    # sum of (1 - slope * x / t)^2 with x / t = 4e12, 2e12, 2e12: slope = 8e12 / 24e24
    assert line.slope == pytest.approx(1 / 3e12)
    assert line.residuals == pytest.approx((-0.25, 0.5, 0.5))


def test_on_a_cpu_there_are_no_launches() -> None:
    found = calibrate([t for t in timings(PLANTED) if t.probe is Probe.HOST_OPS], H100, is_asynchronous=False)
    assert (found.overheads.kernel_s, found.overheads.gap_s, found.overheads.is_asynchronous) == (0.0, 0.0, False)


def test_lines_that_are_none_are_refused() -> None:
    with pytest.raises(CostError, match=r"bytes moved: a line needs timings at two places or more, got 2 at x = \[5"):
        calibrate([Timing(Probe.COPY, 5, 1.0), Timing(Probe.COPY, 5, 2.0)], H100)
    with pytest.raises(CostError, match="operations: the time does not grow with x"):
        calibrate([Timing(Probe.PRODUCT, 1, 2.0), Timing(Probe.PRODUCT, 2, 1.0)], H100)
