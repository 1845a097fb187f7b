from __future__ import annotations

import threading

import pytest

from labkit.errors import CostError
from labkit.experiments.background_traces import BackgroundTraces
from labkit.experiments.what_if_model import ModelChoice
from labkit.models.registry import Model

CHOICE = ModelChoice(Model.POOLED)


def test_a_model_is_traced_once_and_then_ready() -> None:
    done = threading.Event()
    traces = BackgroundTraces(done.set)
    assert not traces.ready(CHOICE)
    assert done.wait(60)
    assert traces.ready(CHOICE)
    assert traces.failure(CHOICE) is None


def test_a_trace_that_fails_is_kept_and_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def broken(model: Model, *_: object) -> None:
        calls.append(str(model))
        raise CostError("no rule for aten.sort")

    monkeypatch.setattr("labkit.experiments.background_traces.step_cost", broken)
    traces = BackgroundTraces(lambda: None)
    assert not traces.ready(CHOICE)
    traces.wait()
    assert not traces.ready(CHOICE)
    assert str(traces.failure(CHOICE)) == "no rule for aten.sort"
    assert calls == ["pooled"]
