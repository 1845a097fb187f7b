"""measure: real events over wall time, exact beside measured, out of memory as a record, refusals in one line."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import labkit.experiments.measure as measuring
from labkit.batching.policy import BatchPolicy
from labkit.bench.record import FIGURES, Record
from labkit.errors import DeviceError, LengthsError, PolicyError
from labkit.experiments.measure import is_out_of_memory, measure
from labkit.jagged import Jagged
from labkit.layouts.batch import Batch
from labkit.models.base import Loss
from labkit.models.ctr import Ctr
from labkit.models.din import Din
from labkit.models.registry import MODELS, FieldSpec, Model
from labkit.provenance import Origin

LENGTHS = np.array([1, 2, 3, 30, 1, 2, 5, 8, 0, 4] * 6)
JAGGED = BatchPolicy("jagged", token_budget=64)
BUCKETS = {"bucket_edges": (5, 30), "token_budget": 120}


def measured(policy: BatchPolicy, **options: Any) -> Record:
    return measure("din", LENGTHS, policy, **{"seconds": 0.01, "warm_up": 1, **options})


@pytest.mark.parametrize(
    "policy",
    [
        BatchPolicy("pad_max", rows=16),
        BatchPolicy("bucket_budget", **BUCKETS),
        BatchPolicy("bucket_graph", **BUCKETS),
        BatchPolicy("packed", rows=4, capacity=30),
        JAGGED,
        BatchPolicy("segmented", token_budget=64),
        BatchPolicy("sparse", token_budget=64),
    ],
    ids=lambda policy: str(policy.strategy),
)
def test_every_layout_is_measured_with_an_origin_or_a_reason_for_every_figure(policy: BatchPolicy) -> None:
    record = measured(policy, epoch=True)
    assert set(record.figures) >= set(FIGURES)
    for name, figure in record.figures.items():
        assert (figure.value is None) == (figure.origin is None), name
        assert figure.value is not None or figure.reason, name
    assert record.provenance["epoch_s"] is Origin.MEASURED
    assert record.provenance["padding_ratio"] is Origin.EXACT
    assert "extrapolated" not in record.reason.get("epoch_s", "")
    assert record.reason["epoch_error_s"] == "a whole epoch was timed: nothing is estimated"
    assert record.n == record.batches
    assert record.kernels is None
    assert record.launches > 50
    assert "ops" in record.reason["launches"]
    # 12.8 MB of embeddings, as much of gradients
    assert record.peak_bytes > 2 * 100_000 * 32 * 4
    json.dumps(record.to_dict(), allow_nan=False)


def test_throughput_counts_real_events_and_not_slots() -> None:
    record = measured(BatchPolicy("pad_max", rows=20), epoch=True)
    # 56 events every ten rows, 30 slots a row
    assert (record.events, record.slots) == (336, 1800)
    assert record.padding_ratio == pytest.approx(1 - 336 / 1800)
    assert record.events_per_s == pytest.approx(336 / record.epoch_s)


def test_what_was_not_run_is_extrapolated_by_events_and_says_so() -> None:
    record = measured(BatchPolicy("pad_max", rows=6), seconds=1e-9)
    assert (record.n, record.batches) == (1, 10)
    assert record.reason["epoch_s"].startswith("extrapolated from 1 of 10 batches, ")
    assert record.epoch_s == pytest.approx(336 / record.events_per_s)
    assert record.epoch_error_s is None
    assert record.reason["epoch_error_s"] == "no shape was timed twice: nothing says how much its steps differ"
    assert record.spread_s is None
    assert record.reason["spread_s"] == "a single step has no spread"


def test_of_too_few_shapes_there_is_no_time_and_all_else_is_there() -> None:
    little = measured(BatchPolicy("bucket_budget", bucket_edges=(2, 5, 30), token_budget=60), seconds=1e-9)
    assert not little.ok
    assert little.events_per_s is None
    assert little.reason["epoch_s"].startswith("only 1 of ")
    assert (little.n, little.events) == (1, 336)
    assert little.peak_bytes > 0


def test_inference_needs_less_memory_than_training() -> None:
    train, inference = measured(JAGGED), measured(JAGGED, train=False)
    assert inference.peak_bytes < train.peak_bytes
    assert "inference" in inference.reason["n"]


def test_mixed_precision_says_how_far_its_loss_is_from_float32() -> None:
    record = measured(JAGGED, amp="bf16")
    assert 0 <= record.loss_difference < 0.05
    assert record.loss != record.loss_float32
    assert measured(JAGGED).reason["loss_difference"] == "measured in float32: there is nothing to compare"


def test_graphs_are_named_where_there_are_none() -> None:
    record = measured(BatchPolicy("bucket_graph", **BUCKETS))
    assert record.graph_replays is None
    assert record.reason["graph_replays"] == "a CPU has no CUDA graphs: the same batches ran eagerly"
    assert measured(JAGGED).reason["graph_replays"] == "jagged is launched op by op"


def test_loader_workers_and_padding_late_give_the_same_batches() -> None:
    policy = BatchPolicy("bucket_budget", **BUCKETS)
    plain = measured(policy, epoch=True)
    other = measured(policy, epoch=True, workers=1, pad_on_device=True)
    assert [other.figures[name].value for name in ("events", "slots", "n", "loss")] == [
        plain.figures[name].value for name in ("events", "slots", "n", "loss")
    ]


def test_real_events_are_measured_as_they_are() -> None:
    lengths = [2, 1, 3]
    data = {"items": Jagged.from_lengths(np.arange(6), lengths), "target": [1, 2, 3], "label": [0.0, 1.0, 1.0]}
    record = measure("din", data, JAGGED, seconds=0.01)
    assert record.events == 6
    assert record.model == "din, real events"
    assert measured(JAGGED).model == "din, made-up events"


def test_the_model_that_is_given_is_not_trained() -> None:
    model = Din()
    before = model.table.weight.clone()
    measure(model, LENGTHS, JAGGED, seconds=0.01)
    assert torch.equal(model.table.weight, before)


def test_progress_is_told_step_by_step() -> None:
    seen: list[int] = []
    record = measured(JAGGED, epoch=True, on_progress=lambda steps, seconds: seen.append(steps))
    assert seen == list(range(1, int(record.n) + 1))


class Hungry(Din):
    """Runs out of memory on batches with many slots."""

    error: Exception = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    def loss(self, batch: Batch) -> Loss:
        if batch.values["items"].numel() > 100:  # type: ignore[index]
            raise self.error
        return super().loss(batch)

    def forward(self, batch: Batch) -> Tensor:
        return super().forward(batch)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory: you tried to allocate"
        ),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        MemoryError(),
    ],
    ids=["cuda", "cpu", "cublas", "python"],
)
def test_out_of_memory_is_a_record_with_the_shape_of_the_batch(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hungry, "error", error)
    record = measure(Hungry(), LENGTHS, BatchPolicy("pad_max", rows=16), seconds=0.01)
    assert not record.ok
    assert "out of memory on " in record.reason["epoch_s"]
    assert " at a batch of 16 x 30 = 480 slots, training, float32: lower rows, " in record.reason["epoch_s"]
    assert record.slots == 1800  # what is exact is known all the same
    assert record.provenance["padding_ratio"] is Origin.EXACT
    assert measure(Hungry(), LENGTHS, BatchPolicy("jagged", token_budget=64), epoch=True).ok


@pytest.mark.parametrize("rows", [2, 16], ids=["runs", "out of memory"])
def test_the_model_is_gone_before_its_memory_is_given_back(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[weakref.ref[Hungry]] = []
    left: list[int] = []

    class Copied(Hungry):
        def loss(self, batch: Batch) -> Loss:
            copies.append(weakref.ref(self))
            self.error = MemoryError()  # one of its own: what was raised before would hold the frames of that time
            return super().loss(batch)

    def give_back(device: torch.device) -> None:
        gc.collect()
        left.append(sum(copy() is not None for copy in copies))

    monkeypatch.setattr(measuring, "_give_back", give_back)
    assert measure(Copied(), LENGTHS, BatchPolicy("pad_max", rows=rows), seconds=0.01).ok == (rows == 2)
    assert copies
    assert left == [0]


def test_another_error_is_no_lack_of_memory() -> None:
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(ValueError("not enough memory"))


def test_segmented_on_a_cpu_says_what_ran_in_the_place_of_the_kernels() -> None:
    whole = measured(BatchPolicy("segmented", token_budget=64), epoch=True)
    assert whole.reason["epoch_s"] == "torch's implementation of the kernels' ops: CUDA kernels do not run here"
    part = measure("din", np.full(60, 5), BatchPolicy("segmented", token_budget=64), seconds=1e-9, warm_up=1)
    for name in ("epoch_s", "events_per_s", "median_s"):
        assert part.reason[name].endswith("; torch's implementation of the kernels' ops: CUDA kernels do not run here")
        assert "torch's implementation" not in measured(JAGGED, seconds=1e-9).reason[name]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"policy": BatchPolicy("rnn_packed", rows=2)},
            PolicyError,
            "model din does not take the packed_sequence layout",
        ),
        ({"policy": "jagged"}, PolicyError, r"^policy must be a BatchPolicy: got 'jagged'\. Write BatchPolicy\("),
        ({"data": np.zeros(7, int)}, LengthsError, r"^all 7 sequences have length 0: there is no event to measure\.$"),
        (
            {"model": Din(items=50)},
            PolicyError,
            "^the made-up ids of items go up to .*, and the model has 50 of them: build it with 100000, or give real",
        ),
        (
            {"model": Ctr(fields=(FieldSpec("items", "event", "int64", 50), *MODELS[Model.CTR].fields[1:]))},
            PolicyError,
            "^the made-up ids of items go up to .*, and the model has 50 of them",
        ),
        ({"model": "dien"}, PolicyError, "model 'dien' does not exist: use one of din, sasrec"),
        ({"device": "tpu"}, DeviceError, "device 'tpu' does not exist"),
        ({"seconds": 0}, PolicyError, "seconds must be a number above 0: got 0"),
        ({"amp": "fp8"}, PolicyError, "amp 'fp8' does not exist: use one of bf16, fp16"),
        ({"workers": -1}, PolicyError, "workers must be 0 or more: got -1"),
        (
            {"policy": BatchPolicy("jagged", token_budget=8)},
            PolicyError,
            r"longest length 30 \(index 3\) is above token_budget 8",
        ),
        (
            {"policy": BatchPolicy("pad_max", rows=100, drop_last=True)},
            PolicyError,
            "pad_max makes no batch of these 60 sequences",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:drop_last")
def test_bad_input_is_one_line(change: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"model": "din", "data": LENGTHS, "policy": JAGGED, "device": "cpu"} | change
    with pytest.raises(error, match=message):
        measure(**given)
