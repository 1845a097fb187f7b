"""ModelStep: compiled means compiled, for every model of a process; a loss is the same whenever it is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.bench.record import Record
from labkit.errors import CompileError
from labkit.experiments.execution import Execution
from labkit.experiments.measure import measure
from labkit.experiments.model_step import ModelStep, no_silent_eager
from labkit.layouts.batch import Batch
from labkit.models.inputs import example_batch
from labkit.models.pooled import PooledTower
from labkit.models.registry import Model, model_spec
from labkit.models.sasrec import SasRec

CPU = torch.device("cpu")


@pytest.fixture
def only_dynamo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo is real, the compiler behind it is not."""

    def as_it_is(self: ModelStep, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.graphs_compiled += 1
        return graph.forward

    monkeypatch.setattr(ModelStep, "_inductor", as_it_is)


def compiled_record(model: Any = "pooled") -> Record:
    lengths = np.array([1, 2, 30, 5, 8, 4] * 10)
    return measure(model, lengths, BatchPolicy("pad_max", rows=7), seconds=0.01, train=False, compile=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("only_dynamo")
def test_the_tenth_compiled_run_of_a_process_is_compiled_too() -> None:
    # Dynamo leaves a code object to run eagerly after its eighth graph, whichever model it belongs to
    for _ in range(10):
        record = compiled_record()
        assert record.ok
        assert record.recompiles == 0
        assert record.reason["recompiles"].endswith("; 1 before, dynamic shapes")


class OpaqueTower(PooledTower):
    """Nothing of it can be compiled."""

    @torch.compiler.disable
    def forward(self, batch: Batch) -> torch.Tensor:
        return super().forward(batch)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("only_dynamo")
def test_where_nothing_is_compiled_there_is_no_time_of_a_compiled_run() -> None:
    record = compiled_record(OpaqueTower())
    assert not record.ok
    assert record.reason["epoch_s"] == (
        "torch.compile compiled nothing, every step would run eagerly: measure without --compile."
    )
    assert record.events_per_s is None
    assert record.events == 500


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_function_that_dynamo_gives_up_on_is_an_error() -> None:
    torch.compiler.reset()
    longer = torch.compile(lambda x, text: x + len(text), backend=lambda graph, inputs: graph.forward)

    def many_graphs() -> None:
        with no_silent_eager():
            for size in range(12):
                longer(torch.ones(3), "a" * size)

    with pytest.raises(CompileError, match="gave up after 8 graphs of one function, and the rest would run eagerly"):
        many_graphs()


def test_the_difference_of_the_losses_is_of_the_precision_and_not_of_two_draws_of_dropout() -> None:
    torch.manual_seed(0)
    step = ModelStep(SasRec(dropout=0.5), CPU, Execution(amp="bf16"))
    spec = model_spec(Model.SASREC)
    batch = example_batch(spec, spec.takes[0], [3, 9, 5])
    before = torch.get_rng_state()
    first, again = step.loss_figures(batch), step.loss_figures(batch)
    assert first == again
    assert first["loss_difference"].value < 0.01
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in step.model.modules())
