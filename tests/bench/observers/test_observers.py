"""Observers: shares, bytes and memory with the arithmetic written down; profiles from stand-in events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import DeviceType

from labkit.bench.observers.copied import Copied
from labkit.bench.observers.launches import StepProfile, covered, summed
from labkit.bench.observers.memory import memory_figures, traced, traced_figures
from labkit.bench.observers.waits import LoaderWait
from labkit.provenance import Origin


def test_the_wait_is_a_share_of_the_wall_time() -> None:
    times = iter([0, 1, 3, 10, 11, 20])  # run at 0; waits 1..3 and 10..11; end at 20
    wait = LoaderWait(lambda: next(times))
    wait.before_run()
    for _ in range(2):
        wait.before_wait()
        wait.before_step()
    wait.after_run()
    assert wait.figures()["loader_wait_share"].value == 3 / 20


def test_a_run_that_never_was_has_no_share() -> None:
    figure = LoaderWait().figures()["loader_wait_share"]
    assert (figure.value, figure.reason) == (None, "nothing was run")


def test_copied_bytes_forget_the_warm_up_and_are_absent_where_nothing_is_copied() -> None:
    copied = Copied()
    copied.add(100)
    copied.before_run()
    assert copied.figures()["copied_bytes"].value is None
    copied.add(3)
    copied.add(4)
    assert copied.figures()["copied_bytes"].value == 7


def test_allocated_reserved_and_used_are_three_numbers() -> None:
    found = memory_figures(allocated=60, reserved=80, used=200)
    names = ("peak_bytes", "allocated_bytes", "reserved_bytes", "device_used_bytes", "fragmentation")
    assert [found[name].value for name in names] == [60, 60, 80, 200, 0.25]
    assert memory_figures(0, 0, 9)["fragmentation"].value is None


def test_a_traced_step_knows_its_peak_and_its_ops() -> None:
    held = torch.zeros(10)  # 40 bytes

    def step() -> None:
        twice = held * 2  # 40 more
        del twice
        (held + 1).sum()  # 40 + 4 more

    found = traced(step, [held])
    assert (found.peak_bytes, found.ops) == (84, 3)
    figures = traced_figures(found.peak_bytes, "one step")
    assert figures["peak_bytes"].origin is Origin.MEASURED
    assert {name for name, f in figures.items() if f.value is None} == set(figures) - {"peak_bytes"}


@dataclass
class Seen:
    """A profiler's event."""

    what: str
    where: DeviceType = DeviceType.CPU
    start: int = 0
    duration: int = 0

    def name(self) -> str:
        return self.what

    def device_type(self) -> DeviceType:
        return self.where

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.duration


def test_launches_are_calls_of_the_host_and_kernels_run_on_the_device() -> None:
    gpu = DeviceType.CUDA
    events = [
        Seen("aten::mm"),
        Seen("cudaLaunchKernel"),
        Seen("cudaLaunchKernelExC"),
        Seen("cuLaunchKernelEx"),
        Seen("cudaGraphLaunch"),
        Seen("cudaMemcpyAsync"),
        Seen("gemm", gpu, 0, 100),
        Seen("relu", gpu, 50, 100),  # overlaps: 0 .. 150
        Seen("graph_node_a", gpu, 200, 50),
        Seen("graph_node_b", gpu, 210, 10),  # within the one before
        Seen("Memcpy HtoD (Pageable -> Device)", gpu, 1000, 500),
        Seen("Memset (Device)", gpu, 2000, 500),
    ]
    assert summed(events) == StepProfile(launches=4, kernels=4, busy_s=pytest.approx(200e-9))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_covered_time_equals_counting_every_nanosecond(intervals: list[tuple[int, int]]) -> None:
    marks = np.zeros(100, dtype=bool)
    for start, duration in intervals:
        marks[start : start + duration] = True
    assert covered([s for s, _ in intervals], [s + d for s, d in intervals]) == marks.sum()
