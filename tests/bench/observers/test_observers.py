"""Observers: shares, bytes and memory with the arithmetic written down; profiles from stand-in events."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import DeviceType

from labkit.bench.observers.copied import Copied
from labkit.bench.observers.launches import StepProfile, covered, cupti_name, summed
from labkit.bench.observers.memory import CudaMemory, allocator_bytes, memory_figures, traced, traced_figures
from labkit.bench.observers.waits import LoaderWait
from labkit.provenance import Figure, Origin


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


class FakeCuda:
    """The counters of an allocator, with a library that keeps a workspace for each of its streams."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tensors, self.workspaces, self.peak = 0, 0, 0
        monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", self.clear, raising=False)
        for name in ("empty_cache", "reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 2 * self.peak)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10, 10_000))

    def clear(self) -> None:
        self.workspaces = 0

    def empty_cache(self) -> None:
        pass

    def memory_allocated(self, device: object) -> int:
        return self.tensors + self.workspaces

    def reset_peak_memory_stats(self, device: object) -> None:
        self.peak = self.memory_allocated(device)

    def max_memory_allocated(self, device: object) -> int:
        return self.peak

    def run(self, more: int, workspaces: int) -> None:
        """A run that needs so much beyond what is there, and leaves workspaces behind."""
        self.workspaces = max(self.workspaces, workspaces)
        self.peak = max(self.peak, self.memory_allocated(None) + more)


def test_a_peak_does_not_depend_on_the_runs_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def watched(workspaces: int) -> dict[str, Figure]:
        memory = CudaMemory(torch.device("cuda"), held)
        cuda.run(more=1000, workspaces=workspaces)
        memory.after_run()
        memory.close()
        return memory.figures()

    cuda, held = FakeCuda(monkeypatch), [torch.zeros(100), torch.zeros(200)]  # 400 and 800 bytes: blocks of 512, 1024
    cuda.tensors = 1536
    small = watched(workspaces=32)
    assert (small["peak_bytes"].value, small["workspace_bytes"].value) == (1536 + 32 + 1000, 32)
    assert watched(workspaces=96)["workspace_bytes"].value == 96
    cuda.run(more=0, workspaces=96)
    assert watched(workspaces=32) == small


def test_what_the_process_held_before_is_no_part_of_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda, held = FakeCuda(monkeypatch), [torch.zeros(100)]
    cuda.tensors = 512 + 5_000_000
    memory = CudaMemory(torch.device("cuda"), held)
    cuda.run(more=1000, workspaces=0)
    memory.after_run()
    memory.close()
    found = memory.figures()
    assert (found["peak_bytes"].value, found["allocated_bytes"].value) == (1512, 5_001_512)
    assert "; without 5.00 MB that this process held before" in str(found["peak_bytes"].reason)


def test_a_view_is_the_memory_of_its_storage_once() -> None:
    whole = torch.zeros(1000)  # 4000 bytes
    assert allocator_bytes([whole, whole[:10], torch.zeros(1)]) == 4096 + 512


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
    annotation: bool = False

    def name(self) -> str:
        return self.what

    def device_type(self) -> DeviceType:
        return self.where

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.duration

    def is_user_annotation(self) -> bool:
        return self.annotation


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


def test_a_named_range_on_the_device_is_no_kernel_and_not_busy() -> None:
    gpu = DeviceType.CUDA
    kernels = [Seen("gemm", gpu, 0, 100), Seen("sgd", gpu, 900, 100)]
    named = [Seen("Optimizer.step#SGD.step", gpu, 0, 1000, True), Seen("cudaLaunchKernel is mine", annotation=True)]
    assert summed(kernels + named) == StepProfile(launches=0, kernels=2, busy_s=pytest.approx(200e-9))


def test_what_torch_says_of_a_range_is_what_is_asked_for() -> None:
    host = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=host, acc_events=True) as recorded, torch.profiler.record_function("mine"):
        torch.zeros(2) + 1
    events = recorded.profiler.kineto_results.events()  # type: ignore[union-attr]
    assert {event.name() for event in events if event.is_user_annotation()} == {"mine"}


def test_the_version_of_cupti_is_named_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package != "nvidia-cuda-cupti-cu12":
            raise metadata.PackageNotFoundError(package)
        return "12.8.57"

    monkeypatch.setattr(metadata, "version", version)
    assert cupti_name() == "CUPTI 12.8.57"
    monkeypatch.setattr(metadata, "version", lambda package: version(""))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert cupti_name() == "CUPTI of CUDA 13.0"


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_covered_time_equals_counting_every_nanosecond(intervals: list[tuple[int, int]]) -> None:
    marks = np.zeros(100, dtype=bool)
    for start, duration in intervals:
        marks[start : start + duration] = True
    assert covered([s for s, _ in intervals], [s + d for s, d in intervals]) == marks.sum()
