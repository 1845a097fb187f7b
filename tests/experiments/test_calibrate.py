"""Calibrating the CPU: a device of the cost model with figures of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.cost.calibration import Probe, Timing
from labkit.errors import GpuError
from labkit.experiments.calibrate import calibrate_here, of_cpu, residual_lines
from labkit.experiments.what_if_model import ModelChoice, modelled
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from labkit.provenance import Origin


def planted() -> list[Timing]:
    """A CPU with 1e10 operations and 1e9 bytes a second, 1 us a view and 5 us an op."""
    counts = (20, 100)
    return [
        *(Timing(Probe.HOST_VIEWS, n, n * 1e-6) for n in counts),
        *(Timing(Probe.HOST_OPS, n, n * 5e-6) for n in counts),
        *(Timing(Probe.COPY, n * 1e6, n * 1e-3) for n in counts),
        *(Timing(Probe.PRODUCT, n * 1e7, n * 1e-3) for n in counts),
    ]


def test_a_cpu_is_a_device_with_measured_peaks() -> None:
    found = of_cpu(planted())
    overheads = found.calibration.overheads
    assert found.device.float32_flops == pytest.approx(1e10)
    assert found.device.bandwidth_bytes_per_s == pytest.approx(1e9)
    assert (overheads.bandwidth_share, overheads.flops_share) == (pytest.approx(1.0), pytest.approx(1.0))
    assert (overheads.op_s, overheads.launch_s) == (pytest.approx(1e-6), pytest.approx(4e-6))
    assert not overheads.is_asynchronous


def test_a_model_is_modelled_on_it() -> None:
    found = of_cpu(planted())
    choice = ModelChoice(Model.DIN, found.device, overheads=found.calibration.overheads)
    histogram = LengthHistogram.from_lengths([1, 2, 3, 5, 8, 8, 30])
    figures = modelled(what_if(histogram, BatchPolicy("pad_max", rows=4)), histogram, choice).figures
    time_s = figures["time_s"]
    assert time_s.origin is Origin.MODELLED
    assert time_s.value is not None
    # two steps of some 200 ops and 125 kernels: more than 0.7 ms of overhead each
    assert time_s.value > 2 * 0.7e-3
    assert "fitted" in str(time_s.reason)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """On a busy machine threads wait for each other much longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_here() -> None:
    found = calibrate_here("cpu", repeats=7, most_bytes=2**26)
    assert found.device.float32_flops > 1e8
    assert found.device.bandwidth_bytes_per_s > 1e8
    lines = residual_lines(found.calibration)
    assert [line.split(":")[0] for line in lines] == [
        Probe.HOST_VIEWS, Probe.HOST_OPS, Probe.COPY, Probe.PRODUCT,
    ]  # fmt: skip
    assert all("off by at most" in line for line in lines)


def test_other_devices_are_refused() -> None:
    with pytest.raises(GpuError, match="device meta cannot be calibrated: use cpu or cuda"):
        calibrate_here(torch.device("meta"))
