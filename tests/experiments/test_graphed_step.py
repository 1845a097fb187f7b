"""bucket_graph: all shapes captured before the clock starts, ghost rows or not, on a stand-in for CUDA graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout
from labkit.experiments import measure_run
from labkit.experiments.execution import Amp, Execution
from labkit.experiments.graphed_step import graphed, one_of_each_shape, with_rows_as_tensor
from labkit.experiments.measure import measure
from labkit.experiments.model_step import ModelStep
from labkit.layouts.batch import Batch
from labkit.models.base import Loss
from labkit.models.din import Din
from labkit.models.inputs import example_batch
from labkit.models.registry import MODELS, Model
from tests.bench.tape import Tape, TapeBackend

CPU = torch.device("cpu")
LENGTHS = np.array([1, 2, 3, 30, 1, 2, 5, 8, 4] * 7)
POLICY = BatchPolicy("bucket_graph", bucket_edges=(5, 30), token_budget=120)


def test_one_batch_of_each_shape_is_chosen() -> None:
    plan = plan_epoch(LENGTHS, POLICY)
    chosen = one_of_each_shape(plan)
    shapes = [(int(plan.rows[i]), int(plan.padded_lengths[i])) for i in chosen]
    assert len(shapes) == len(set(shapes)) == plan.shapes == 2


def test_shapes_are_chosen_from_the_most_slots_to_the_fewest() -> None:
    plan = plan_epoch(LENGTHS, BatchPolicy("bucket_graph", bucket_edges=(2, 5, 8, 30), token_budget=120))
    slots = [int(plan.rows[i] * plan.padded_lengths[i]) for i in one_of_each_shape(plan)]
    assert slots == sorted(slots, reverse=True)
    assert len(set(slots)) > 1


class HungryInside(Din):
    """Runs out of memory under a capture of the narrow shape."""

    def loss(self, batch: Batch) -> Loss:
        if Tape.recording and batch.values["items"].shape[1] == 5:  # type: ignore[index]
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return super().loss(batch)


def test_out_of_memory_in_a_capture_is_a_record_with_the_shape_that_was_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure_run, "graph_backend", lambda device: TapeBackend())
    record = measure(HungryInside(), LENGTHS, POLICY, seconds=0.01, warm_up=1)
    assert " at a batch of 17 x 5 = 85 slots, training, float32" in record.reason["epoch_s"]


def test_every_step_of_an_epoch_is_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = TapeBackend()
    monkeypatch.setattr(measure_run, "graph_backend", lambda device: backend)
    record = measure("din", LENGTHS, POLICY, epoch=True, warm_up=1)
    assert plan_epoch(LENGTHS, POLICY).ghost_rows > 0  # their number must not need a graph of its own
    assert backend.log.count("capture") == record.graph_captures == 2
    assert record.n == len(plan_epoch(LENGTHS, POLICY))
    assert (record.graph_replays, record.graph_fallbacks) == (record.n, 0)


def test_fp16_training_is_captured_and_its_scaler_is_as_if_there_had_been_no_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # torch's plain SGD asks on the host whether a gradient overflowed, which no capture allows
    monkeypatch.setattr(measure_run, "graph_backend", lambda device: TapeBackend())
    record = measure("din", LENGTHS, POLICY, epoch=True, warm_up=1, amp="fp16")
    assert (record.graph_replays, record.graph_fallbacks) == (record.n, 0)

    eager, graphs = (ModelStep(Din(), CPU, Execution(amp=Amp.FP16)) for _ in range(2))
    graphs.model.load_state_dict(eager.model.state_dict())
    replayed = graphed(graphs, TapeBackend())
    batches = [with_rows_as_tensor(example_batch(MODELS[Model.DIN], Layout.PADDED, [3, 2], seed=s)) for s in range(3)]
    replayed.prepare(batches[:1])
    for batch in batches:
        eager(batch)
        replayed(batch)
    assert replayed.replays == 3
    torch.testing.assert_close(graphs.model.state_dict(), eager.model.state_dict())
    assert graphs.scaler.state_dict() == eager.scaler.state_dict()
    assert eager.scaler.state_dict()["_growth_tracker"] == 3  # steps since the factor changed
