"""What an epoch comes to by a few profiled batches, and what torch.compile hides."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.bench.observers.launches import StepProfile
from labkit.errors import MissingPackageError
from labkit.experiments import close_look
from labkit.experiments.close_look import CloseLook, profile_figures
from labkit.experiments.measure import measure
from labkit.experiments.model_step import ModelStep
from labkit.experiments.representatives import Representatives
from labkit.provenance import Figure, Origin

# widths 2 (2 batches) and 8 (1 batch)
CHOSEN = Representatives.of_plan(
    plan_epoch([1, 2, 2, 8, 5], BatchPolicy("bucket_rows", rows=2, bucket_edges=(2, 8), shuffle=False))
)
PROFILES = [StepProfile(launches=10, kernels=20, busy_s=1.0), StepProfile(launches=30, kernels=50, busy_s=4.0)]


def test_a_profile_of_each_width_gives_the_epoch() -> None:
    found = profile_figures(PROFILES, CHOSEN, Figure(10.0, "s", Origin.MEASURED))
    assert found["launches"].value == 2 * 10 + 30
    assert found["kernels"].value == 2 * 20 + 50
    assert found["host_gap_share"].value == pytest.approx(1 - (2 * 1 + 4) / 10)


def test_without_a_duration_there_is_no_gap_and_never_a_negative_one() -> None:
    none = profile_figures(PROFILES, CHOSEN, Figure(None, "s", None, "no events"))
    assert none["host_gap_share"].value is None
    contradiction = profile_figures(PROFILES, CHOSEN, Figure(5.0, "s", Origin.MEASURED))["host_gap_share"]
    assert contradiction.value == 0
    why = "by the profiles kernels run for 6.00 s, longer than the epoch of 5.00 s: one of the two is off"
    assert why in str(contradiction.reason)
    fits = profile_figures(PROFILES, CHOSEN, Figure(6.0, "s", Origin.MEASURED))["host_gap_share"]
    assert "is off" not in str(fits.reason)


def test_on_a_gpu_the_profiler_is_opened_first_and_the_workspaces_are_freed_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    class Memory:
        def __init__(self, device: torch.device, held: tuple[torch.Tensor, ...]) -> None:
            order.append(f"watch from {len(held)} parameters")

        def after_run(self) -> None:
            order.append("peaks")

        def close(self) -> None:
            order.append("free")

        def figures(self) -> dict[str, Figure]:
            return {"peak_bytes": Figure(7, "bytes", Origin.MEASURED)}

    def profiled(call: Callable[[], object], device: torch.device) -> StepProfile:
        call()
        order.append("profile")
        return PROFILES[0]

    monkeypatch.setattr(close_look, "CudaMemory", Memory)
    monkeypatch.setattr(close_look, "wake_profiler", lambda: order.append("wake"))
    monkeypatch.setattr(close_look, "profile_step", profiled)
    look = CloseLook(lambda batch: None, torch.nn.Linear(2, 2), torch.device("cuda"), CHOSEN)
    found = look.after(lambda number: number, Figure(10.0, "s", Origin.MEASURED))
    assert order == ["wake", "watch from 2 parameters", "peaks", "profile", "profile", "free"]
    assert (found["peak_bytes"].value, found["launches"].value) == (7, 30)


def test_on_a_cpu_the_peak_is_the_highest_of_all_batches_that_were_looked_at() -> None:
    def attend(number: int) -> None:  # the batch with the most slots is not the one that takes the most
        torch.empty(100 if number == CHOSEN.largest else 1000, dtype=torch.uint8)

    look = CloseLook(attend, torch.nn.Linear(2, 2), torch.device("cpu"), CHOSEN)
    look.before(lambda number: number)
    found = look.after(lambda number: number, Figure(10.0, "s", Origin.MEASURED))
    assert found["peak_bytes"].value == 24 + 1000
    assert "the highest from 2 batches, one of each width" in str(found["peak_bytes"].reason)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_graphs_are_counted_and_what_a_tracer_cannot_see_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_it_is(self: ModelStep, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.graphs_compiled += 1
        return graph.forward

    monkeypatch.setattr(ModelStep, "_inductor", as_it_is)  # Dynamo is real, the compiler is not
    torch.compiler.reset()
    lengths = np.array([1, 2, 30, 5, 8, 4] * 10)
    record = measure("pooled", lengths, BatchPolicy("pad_max", rows=7), epoch=True, train=False, compile=True)
    assert record.recompiles == 0
    assert " before, dynamic shapes" in record.reason["recompiles"]
    assert (record.peak_bytes, record.launches) == (None, None)
    assert "measure without --compile" in record.reason["launches"]


def test_a_missing_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"needs a C\+\+ compiler, and g\+\+ is not on the PATH: apt-get"):
        measure("pooled", [1, 2], BatchPolicy("pad_max"), compile=True)
