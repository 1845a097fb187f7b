"""StrategyRun: what comes before what, what is warmed up, and in which arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labkit.batching.policy import BatchPolicy
from labkit.bench.timing import CpuClock, Timing, time_steps
from labkit.errors import DeviceError
from labkit.experiments import measure_run
from labkit.experiments.close_look import CloseLook
from labkit.experiments.epoch_estimate import EpochEstimate, timed_order
from labkit.experiments.execution import Execution
from labkit.experiments.float32 import full_float32
from labkit.experiments.measure import Workload, measure
from labkit.experiments.measure_run import StrategyRun
from labkit.experiments.representatives import Representatives
from labkit.layouts.batch import Batch
from labkit.models.base import Loss
from labkit.models.pooled import PooledTower
from labkit.provenance import Figure, Origin

LENGTHS = np.array([1, 2, 3, 30, 1, 2, 5, 8, 0, 4] * 6)
BUCKETS = BatchPolicy("bucket_budget", bucket_edges=(2, 5, 30), token_budget=60)


def strategy_run(policy: BatchPolicy = BUCKETS, **options: Any) -> StrategyRun:
    work = Workload.of("pooled", LENGTHS)
    return StrategyRun(work.model, work.data, work.spec.sequences, policy, torch.device("cpu"), Execution(**options))


def test_the_losses_are_computed_before_memory_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    run, order = strategy_run(seconds=0.01), []
    losses = run._step.loss_figures
    monkeypatch.setattr(run._step, "loss_figures", lambda batch: order.append("losses") or losses(batch))

    class Watching(CloseLook):
        def __init__(self, *args: Any, **more: Any) -> None:
            order.append("watch")
            super().__init__(*args, **more)

    monkeypatch.setattr(measure_run, "CloseLook", Watching)
    run.run()
    assert order == ["losses", "watch"]


def warmed(run: StrategyRun, monkeypatch: pytest.MonkeyPatch, compiles_for: int = 0, tick: float = 0.0) -> list[int]:
    """Numbers of the batches that the warm-up does, on a clock that gains ``tick`` whenever it is looked at."""
    seen: list[int] = []
    now = iter(np.arange(1000) * tick)
    monkeypatch.setattr(measure_run.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(run, "_at", lambda number: number)

    def step(number: int) -> None:
        seen.append(number)
        run._step.graphs_compiled += len(seen) <= compiles_for

    run._do = step
    run._warm_up(Representatives.of_plan(run.plan), 0)
    return seen


def test_every_width_is_warmed_up_before_the_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = strategy_run(warm_up=1)
    seen = warmed(run, monkeypatch)
    assert set(run.plan.padded_lengths[seen].tolist()) == {2, 5, 30}
    assert run.plan.batch_slots[seen[0]] == run.plan.batch_slots.max()
    assert len(warmed(strategy_run(warm_up=7), monkeypatch)) == 7


def test_the_warm_up_has_its_seconds_without_those_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(warmed(strategy_run(seconds=1.0), monkeypatch, tick=2.0)) == 1
    assert len(warmed(strategy_run(seconds=1.0), monkeypatch, compiles_for=2, tick=2.0)) == 3


def tick() -> Callable[[], float]:
    """A wall clock on which one epoch of ``BUCKETS`` ends at 4 s and the third would at 12 s."""
    per_epoch = len(strategy_run().plan)
    steps = count()
    return lambda: next(steps) * 4.0 / per_epoch


class Asking(PooledTower):
    """Notes whether TF32 was allowed while it ran."""

    seen: list[tuple[bool, bool]] = []  # noqa: RUF012 - of the class on purpose: measure copies its model

    def forward(self, batch: Batch) -> Tensor:
        self.seen.append((torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32))
        return super().forward(batch)

    def loss(self, batch: Batch) -> Loss:
        self.seen.append((torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32))
        return super().loss(batch)


def test_float32_is_no_tf32_and_the_switches_are_put_back() -> None:
    assert torch.backends.cudnn.allow_tf32  # torch's own default, which a GRU would follow
    for train in (True, False):
        Asking.seen.clear()
        assert measure(Asking(), LENGTHS, BUCKETS, epoch=True, train=train).ok
        assert set(Asking.seen) == {(False, False)}
    assert torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32


def test_switches_that_cannot_be_read_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    rnn = getattr(torch.backends.cudnn, "rnn", None)
    if rnn is None:
        pytest.skip("this torch has one interface for TF32")
    before = rnn.fp32_precision
    rnn.fp32_precision = "ieee"
    try:
        with pytest.raises(DeviceError, match="through allow_tf32 and fp32_precision; use one"), full_float32():
            pass
    finally:
        rnn.fp32_precision = before
    assert torch.backends.cudnn.allow_tf32


def test_sums_over_a_part_are_brought_to_an_epoch_bytes_by_slots_and_joules_by_time() -> None:
    run = strategy_run(BatchPolicy("pad_max", rows=6))  # 10 batches
    timing = Timing(np.ones(2), 4.0, exhausted=False)
    measured = Origin.MEASURED
    sums = {
        "copied_bytes": Figure(100, "bytes", measured),
        "energy_j": Figure(8, "J", measured, "of the card"),
        "utilization": Figure(0.5, "1", measured),
    }
    found = run._of_the_epoch(sums, timing, run._estimated(timing))
    assert found["copied_bytes"] == Figure(500.0, "bytes", measured, "extrapolated by slots from 2 of 10 batches")
    assert found["energy_j"] == Figure(40.0, "J", measured, "of the card; extrapolated by time from 2 of 10 batches")
    assert found["utilization"] == sums["utilization"]
    nothing = EpochEstimate(None, None, "too little", "too little")
    none = run._of_the_epoch(sums, timing, nothing)
    assert none["energy_j"] == Figure(None, "J", None, "it cannot be extrapolated by time from 2 of 10 batches")
    whole = Timing(np.ones(10), 20.0, exhausted=True)
    assert run._of_the_epoch(sums, whole, run._estimated(whole)) == sums


def test_time_and_rate_of_a_part_come_with_an_error() -> None:
    run = strategy_run(BatchPolicy("pad_max", rows=6))  # 10 batches, 336 events
    timing = Timing(np.array([1.0, 3.0]), 4.0, exhausted=False)
    found = run._timing_figures(timing, run._estimated(timing))
    assert (found["epoch_s"].value, found["events_per_s"].value) == (20.0, 336 / 20)
    assert found["epoch_error_s"].value == pytest.approx(80**0.5)  # 10 * 8 * variance 2 / 2 steps
    assert found["epoch_error_s"].origin is Origin.MEASURED
    assert "extrapolated from 2 of 10 batches, 1 of 1 shapes" in str(found["epoch_s"].reason)


def test_short_epochs_are_repeated_whole_in_a_new_order_each_time() -> None:
    run, seen = strategy_run(seconds=3.0), []
    at = run._placed
    run._placed = lambda batch: seen.append(batch.lengths.tolist()) or at(batch)  # type: ignore[method-assign]
    orders = [order.tolist() for order, _ in zip(run._orders(), range(3), strict=False)]
    assert len({tuple(order) for order in orders}) == 3
    assert [sorted(order) for order in orders] == [list(range(len(run.plan)))] * 3
    assert len(list(strategy_run(epoch=True)._orders())) == 1
    timing = time_steps(
        run._counted_step, run._loader(), clock=CpuClock(), seconds=9.5, epoch=len(run.plan), now=tick()
    )
    assert timing.n == 2 * len(run.plan)
    first, second = seen[: len(run.plan)], seen[len(run.plan) :]
    assert first != second
    assert sorted(first) == sorted(second)


def test_of_several_epochs_the_mean_counts_and_sums_are_those_of_one() -> None:
    run = strategy_run(BatchPolicy("pad_max", rows=6))  # 10 batches
    timing = Timing(np.repeat([1.0, 2.0, 3.0], 10), 120.0, exhausted=False)  # half of the wall time lies beside steps
    whole = run._estimated(timing)
    assert whole.seconds == pytest.approx(40.0)
    assert whole.error == pytest.approx(2 * 10 / 3**0.5)
    assert "mean of 3 whole epochs" in str(whole.reason)
    assert run._timing_figures(timing, whole)["n"].value == 30
    sums = {"copied_bytes": Figure(300, "bytes", Origin.MEASURED), "energy_j": Figure(9, "J", Origin.MEASURED)}
    found = run._of_the_epoch(sums, timing, whole)
    assert (found["copied_bytes"].value, found["energy_j"].value) == (pytest.approx(100), pytest.approx(3))
    assert found["energy_j"].reason == "brought to one epoch by time from 3 epochs"


def compiled_in(run: StrategyRun, n: int, *slow: int) -> None:
    run._compiling[:] = [step in slow for step in range(n)]


def test_a_step_in_which_something_was_compiled_is_left_out_of_the_rate() -> None:
    run = strategy_run(BatchPolicy("pad_max", rows=6))  # 10 batches, 336 events
    compiled_in(run, 4, 1)
    timing = Timing(np.array([1.0, 500.0, 1.0, 1.0]), 503.0, exhausted=False)
    found = run._timing_figures(timing, run._estimated(timing))
    assert found["epoch_s"].value == pytest.approx(10.0)
    assert found["events_per_s"].value == pytest.approx(33.6)
    assert (found["n"].value, found["median_s"].value) == (3, 1.0)
    assert "1 more in which something was compiled do not count" in str(found["n"].reason)
    assert "extrapolated from 3 of 10 batches" in str(found["epoch_s"].reason)


def test_of_whole_epochs_those_without_a_compilation_count() -> None:
    run = strategy_run(BatchPolicy("pad_max", rows=6))
    compiled_in(run, 20, 3)
    steps = np.array([*[1.0] * 3, 500.0, *[1.0] * 6, *[2.0] * 10])
    found = run._estimated(Timing(steps, float(steps.sum()), exhausted=False))
    assert found.seconds == pytest.approx(20.0)
    compiled_in(run, 10, 3)
    one = run._estimated(Timing(steps[:10], float(steps[:10].sum()), exhausted=True))
    assert one.seconds == pytest.approx(10.0)
    assert "9 of 10 batches" in str(one.reason)


def test_where_every_step_compiled_there_is_no_time() -> None:
    run = strategy_run(BatchPolicy("pad_max", rows=6))
    compiled_in(run, 2, 0, 1)
    timing = Timing(np.array([5.0, 5.0]), 10.0, exhausted=False)
    found = run._timing_figures(timing, run._estimated(timing))
    assert {found[name].value for name in ("epoch_s", "events_per_s", "median_s", "spread_s")} == {None}
    assert found["n"].value == 0
    assert "something was compiled in every step" in str(found["epoch_s"].reason)


def test_a_step_that_compiles_is_noticed() -> None:
    run = strategy_run()
    todo = iter([0, 1, 0])

    def step(batch: Any) -> None:
        run._step.graphs_compiled += next(todo)

    run._do = step
    for _ in range(3):
        run._counted_step(run.batch(0))
    assert run._compiling == [False, True, False]


def test_a_part_is_timed_in_the_order_of_the_shapes_and_a_whole_epoch_as_planned() -> None:
    run = strategy_run()
    numbers = [[int(i) for i in indices] for indices in measure_run._InOrder(run.plan, [run._order])]
    assert numbers == [run.plan[i].tolist() for i in timed_order(run.plan, 0)]
    assert strategy_run(epoch=True)._order.tolist() == list(range(len(run.plan)))
