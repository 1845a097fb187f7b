from __future__ import annotations

import threading

import pytest

from labkit.bench.gauge_feed import GaugeFeed
from labkit.bench.machine_gauges import MachineGauges, MachineReading
from labkit.errors import DeviceError
from labkit.provenance import Figure


class Screen:
    """What a feed gave, and how it ended."""

    def __init__(self, looks: int) -> None:
        self.looks, self.given = looks, []
        self.enough, self.over = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def give(self, gauges: MachineGauges, reading: MachineReading, cost: Figure) -> bool:
        self.given.append((reading, cost))
        if len(self.given) >= self.looks:
            self.enough.set()
        return len(self.given) < self.looks

    def ended(self, error: Exception | None) -> None:
        self.error = error
        self.over.set()


def samplers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name in ("labkit-sampler", "labkit-gauges")]


def test_it_ends_when_nobody_looks_any_more() -> None:
    screen = Screen(looks=3)
    feed = GaugeFeed(screen.give, screen.ended, interval_s=0.1)
    assert screen.over.wait(20)
    assert (len(screen.given), screen.error) == (3, None)
    reading, cost = screen.given[-1]
    assert 0 < reading.host_used_bytes < reading.host_total_bytes
    assert 0 <= reading.cpu_share.value <= 1
    assert cost.value > 0
    feed.stop(wait=True)
    assert samplers() == []


def test_it_stops_and_leaves_no_thread() -> None:
    screen = Screen(looks=10**9)
    feed = GaugeFeed(screen.give, screen.ended, interval_s=0.1)
    feed.stop(wait=True)
    assert screen.over.is_set()
    assert samplers() == []


def test_what_goes_wrong_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: MachineGauges) -> MachineReading:
        raise OSError("no /proc here")

    monkeypatch.setattr(MachineGauges, "read", broken)
    screen = Screen(looks=1)
    GaugeFeed(screen.give, screen.ended, interval_s=0.1).stop(wait=False)
    assert screen.over.wait(20)
    assert "no /proc here" in str(screen.error)


def test_without_a_gpu_the_machine_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise DeviceError("NVML cannot be opened: libnvidia-ml.so.1 is not found.")

    monkeypatch.setattr("labkit.bench.machine_gauges.NvmlSession", missing)
    gauges = MachineGauges()
    assert gauges.no_gpu == "NVML cannot be opened: libnvidia-ml.so.1 is not found."
    assert gauges.read().gpu is None
    gauges.close()
    gauges.close()
