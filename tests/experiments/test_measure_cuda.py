"""On a CUDA device: DIN under every strategy, graphs that train as eager steps do, no memory left, calibration."""

from __future__ import annotations

import gc
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout
from labkit.bench.graph_backend import CudaGraphs
from labkit.bench.graphs import GraphedSteps
from labkit.bench.record import FIGURES, Record
from labkit.experiments.calibrate import calibrate_here
from labkit.experiments.execution import Amp, Execution
from labkit.experiments.graphed_step import graphed, with_rows_as_tensor
from labkit.experiments.measure import measure
from labkit.experiments.measure_child import ChildRun
from labkit.experiments.measure_job import Job
from labkit.experiments.model_step import ModelStep
from labkit.layouts.batch import Batch
from labkit.layouts.moving import to_device
from labkit.lengths.histogram import LengthHistogram
from labkit.models.base import Loss
from labkit.models.din import Din
from labkit.models.inputs import example_batch
from labkit.models.registry import MODELS, Model
from labkit.provenance import Origin

pytestmark = pytest.mark.gpu

DEVICE = torch.device("cuda", 0)
MIB = 2**20
LENGTHS = np.array([1, 2, 3, 30, 1, 2, 5, 8, 0, 4] * 60)
BUCKETS = {"bucket_edges": (5, 30), "token_budget": 1200}
JAGGED, GRAPH = BatchPolicy("jagged", token_budget=640), BatchPolicy("bucket_graph", **BUCKETS)
POLICIES = [
    BatchPolicy("pad_max", rows=160),
    BatchPolicy("pad_recent", rows=160, max_length=8),
    BatchPolicy("pad_batch", rows=160),
    BatchPolicy("bucket_rows", rows=160, bucket_edges=(5, 30)),
    BatchPolicy("bucket_budget", **BUCKETS),
    GRAPH,
    BatchPolicy("packed", rows=40, capacity=30),
    JAGGED,
    BatchPolicy("segmented", token_budget=640),
    BatchPolicy("sparse", token_budget=640),
]
EVERY = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: str(policy.strategy))
TABLE_BYTES = 100_000 * 32 * 4


def measured(policy: BatchPolicy, **options: Any) -> Record:
    record = measure("din", LENGTHS, policy, "cuda", **{"epoch": True, "warm_up": 2, **options})
    assert record.ok, record.reason["epoch_s"]
    return record


# --- every strategy


@EVERY
@pytest.mark.parametrize("train", [True, False], ids=["train", "inference"])
def test_din_is_measured_under_every_strategy_it_takes(policy: BatchPolicy, train: bool) -> None:
    record = measured(policy, train=train)
    assert set(record.figures) >= set(FIGURES)
    for name, figure in record.figures.items():
        assert (figure.value is None) == (figure.origin is None), name
        assert figure.value is not None or figure.reason, name
    assert record.n == record.batches
    for name in ("epoch_s", "events_per_s", "launches", "kernels", "peak_bytes", "reserved_bytes", "copied_bytes"):
        assert record.provenance[name] is Origin.MEASURED, name
        assert record.figures[name].value > 0, name
    assert record.peak_bytes <= record.reserved_bytes <= record.device_used_bytes
    assert record.peak_bytes > TABLE_BYTES * (2 if train else 1)
    on_cpu = measure("din", LENGTHS, policy, "cpu", seconds=0.01, warm_up=1, train=train)
    assert record.loss == pytest.approx(on_cpu.loss, rel=1e-4)
    assert [record.figures[name].value for name in ("events", "slots", "batches")] == [
        on_cpu.figures[name].value for name in ("events", "slots", "batches")
    ]


@pytest.mark.parametrize("amp", list(Amp))
@EVERY
def test_mixed_precision_is_measured_with_its_loss_beside_that_of_float32(policy: BatchPolicy, amp: Amp) -> None:
    record = measured(policy, amp=amp)
    assert 0 <= record.loss_difference < 0.02
    assert record.loss_float32 == pytest.approx(measured(policy).loss, rel=1e-4)


def test_a_compiled_run_is_compiled_before_it_is_timed() -> None:
    record = measured(BatchPolicy("bucket_budget", **BUCKETS), compile=True, warm_up=4)
    assert record.recompiles is not None
    assert record.kernels < measured(BatchPolicy("bucket_budget", **BUCKETS)).kernels


def test_a_peak_does_not_depend_on_what_was_measured_before() -> None:
    first = measured(JAGGED).peak_bytes
    measured(GRAPH)
    assert measured(JAGGED).peak_bytes == pytest.approx(first, abs=MIB)


def test_the_graphs_of_a_strategy_hold_no_second_model() -> None:
    # cuBLAS has a workspace for each stream, and captures have a stream of their own
    eager, graphs = (
        record.peak_bytes - record.figures["workspace_bytes"].value
        for record in (measured(BatchPolicy("bucket_budget", **BUCKETS)), measured(GRAPH))
    )
    assert graphs - eager < TABLE_BYTES


def test_a_job_on_the_device_runs_in_a_child() -> None:
    job = Job(LengthHistogram.from_lengths(LENGTHS), (JAGGED, GRAPH), device="cuda", execution=Execution(epoch=True))
    records = [event for event in ChildRun(job) if isinstance(event, Record)]
    assert [record.ok for record in records] == [True, True]
    assert all(record.environment["gpu"] == torch.cuda.get_device_name(DEVICE) for record in records)


# --- graphs


@pytest.mark.parametrize("execution", [{}, {"amp": "bf16"}, {"amp": "fp16"}, {"train": False}], ids=str)
def test_every_timed_step_of_bucket_graph_is_a_replay_of_one_launch(execution: dict[str, Any]) -> None:
    record = measured(GRAPH, **execution)
    assert (record.graph_captures, record.graph_replays, record.graph_fallbacks) == (2, record.n, 0)
    # beside the launch of the graph a batch may need one for each field that is copied with another layout
    assert record.batches <= record.launches <= 6 * record.batches
    assert record.kernels > 10 * record.batches


def batches(seeds: int) -> list[Batch]:
    """Two shapes in turns, with ghost rows of another number each time."""
    made = []
    for seed in range(seeds):
        rows, width = (4, 9) if seed % 2 else (6, 5)
        lengths = [(seed + i) % width + 1 for i in range(rows - seed % 3)]
        batch = example_batch(MODELS[Model.DIN], Layout.PADDED, lengths, rows=rows, width=width, seed=seed)
        made.append(to_device(with_rows_as_tensor(batch), DEVICE))
    return made


@pytest.mark.parametrize(("amp", "rtol"), [(None, 1e-4), (Amp.BF16, 2e-2), (Amp.FP16, 2e-3)])
def test_din_trains_through_graphs_as_it_does_without(amp: Amp | None, rtol: float) -> None:
    torch.manual_seed(0)
    model = Din().to(DEVICE)
    twin = Din().to(DEVICE)
    twin.load_state_dict(model.state_dict())
    eager, step = (ModelStep(m, DEVICE, Execution(amp=amp)) for m in (model, twin))
    graphs = graphed(step, CudaGraphs(DEVICE))
    graphs.prepare(batches(2))
    untouched = twin.table.weight.detach().clone()
    torch.testing.assert_close(untouched, model.table.weight, rtol=0, atol=0)  # as if there had been no warm-up
    for batch in batches(8):
        eager(batch)
        graphs(batch)
    assert (graphs.captures, graphs.replays, graphs.fallbacks) == (2, 8, 0)
    assert not torch.equal(twin.table.weight, untouched)
    # sums of gradients by atomics have no order, so that not even two eager runs are equal to the bit
    torch.testing.assert_close(twin.state_dict(), model.state_dict(), rtol=rtol, atol=1e-5)
    assert step.scaler.state_dict() == eager.scaler.state_dict()


def test_the_scores_of_din_through_graphs_are_those_without() -> None:
    model = Din().to(DEVICE).eval()
    graphs = GraphedSteps(torch.no_grad()(model), CudaGraphs(DEVICE))
    for batch in batches(6):
        with torch.no_grad():
            expected = model(batch)
        torch.testing.assert_close(graphs(batch), expected, rtol=1e-5, atol=1e-6)
    assert (graphs.captures, graphs.replays) == (2, 6)


# --- memory that runs out


def held() -> int:
    """Bytes of tensors; those that cuBLAS keeps for its streams are no leak."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    return torch.cuda.memory_allocated(DEVICE)


class Greedy(Din):
    """Asks for more than any card has: always, or under a capture alone."""

    capture_alone = False

    def loss(self, batch: Batch) -> Loss:
        wide = batch.values["items"].shape[-1] == 30  # type: ignore[index]
        if wide and (not self.capture_alone or torch.cuda.is_current_stream_capturing()):
            torch.empty(2**50, dtype=torch.uint8, device=self.table.weight.device)
        return super().loss(batch)


@pytest.mark.parametrize("capture_alone", [False, True], ids=["step", "capture"])
def test_memory_that_runs_out_is_a_record_with_the_batch_and_the_device_goes_on(
    capture_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Greedy, "capture_alone", capture_alone)
    record = measure(Greedy(), LENGTHS, GRAPH, "cuda", seconds=0.1)
    assert not record.ok
    assert f"out of memory on {torch.cuda.get_device_name(DEVICE)} at a batch of " in record.reason["epoch_s"]
    assert " x 30 = " in record.reason["epoch_s"]
    before = held()
    measured(JAGGED)
    assert held() <= before + MIB


# --- calibration


def test_the_card_is_calibrated_within_its_own_peaks() -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(DEVICE)
    found = calibrate_here(DEVICE, repeats=3)
    assert found.device.name.split()[0] in torch.cuda.get_device_name(DEVICE)
    overheads = found.calibration.overheads
    assert overheads.source == "fitted"
    assert overheads.is_asynchronous
    assert all(value >= 0 for value in astuple(overheads) if isinstance(value, float))
    assert 0 < overheads.bandwidth_share <= 1
    assert 0 < overheads.flops_share <= 1
    assert torch.cuda.memory_reserved(DEVICE) <= before + 64 * MIB  # what it took is given back


def test_calibration_of_a_card_leaves_the_current_device_and_stream_alone() -> None:
    stream = torch.cuda.current_stream()
    calibrate_here("cuda", repeats=1)
    assert (torch.cuda.current_device(), torch.cuda.current_stream()) == (stream.device.index, stream)
