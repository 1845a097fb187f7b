"""Calibrating the CPU: a device of the cost model with figures of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.cost.calibration import Probe, Timing
from labkit.cost.devices import GPUS
from labkit.errors import DeviceError
from labkit.experiments import calibrate
from labkit.experiments.calibrate import calibrate_here, copies_of, of_cpu, residual_lines
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
    # two steps of some 200 ops and 100 kernels: more than 0.7 ms of overhead each
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


def test_other_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="device 'meta' is of a kind that labkit does not measure: use cpu, cuda"):
        calibrate_here(torch.device("meta"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="there is no CUDA device"):
        calibrate_here("cuda")


def test_it_measures_on_the_device_asked_for_and_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    @contextmanager
    def current(device: torch.device) -> Iterator[None]:
        seen.append(f"enter {device}")
        yield
        seen.append(f"leave {device}")

    def probe(device: torch.device, *_: object) -> Iterator[Timing]:
        seen.append(f"measure {device}")
        yield from ()

    monkeypatch.setattr(calibrate, "open_device", torch.device)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(torch.cuda, "device", current)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: seen.append("give back"))
    for name in ("_host", "_queue", "_work"):
        monkeypatch.setattr(calibrate, name, probe)
    assert calibrate_here("cuda:1").device.name == "H100"
    assert seen == ["enter cuda:1", *["measure cuda:1"] * 3, "leave cuda:1", "give back"]


def test_copies_are_far_larger_than_the_cache() -> None:
    for card in GPUS.values():
        assert min(copies_of(2**28, card.l2_bytes)) >= 8 * card.l2_bytes
    assert copies_of(2**28, 0) == (2**24, 2**26, 2**28)


def test_a_replay_is_timed_with_its_inputs_on_the_host() -> None:
    class Graph:
        replays = 0

        def replay(self) -> None:
            self.replays += 1

    graph: Any = Graph()
    found = list(calibrate._replays(graph, torch.device("cpu"), 2))
    assert [(t.probe, t.x) for t in found] == [(Probe.GRAPH_REPLAYS, n) for n in (5, 20, 50)]
    assert graph.replays == 3 * (5 + 20 + 50)  # once without the clock, twice with it
