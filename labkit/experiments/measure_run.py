"""One strategy, run and watched: loader, warm-up, timed steps, the close look, and the figures of a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Sampler

from labkit.batching.pieces import batch_indices
from labkit.batching.plan import EpochPlan
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.strategies import Layout, Strategy
from labkit.bench.observers.base import Observer
from labkit.bench.observers.copied import Copied
from labkit.bench.observers.waits import LoaderWait
from labkit.bench.ranges import nvtx_range
from labkit.bench.timing import Timing, clock_of, time_steps
from labkit.errors import CompileError, PolicyError
from labkit.experiments.batch_facts import shape_text
from labkit.experiments.close_look import CloseLook
from labkit.experiments.epoch_estimate import EpochEstimate, estimate_of, timed_order
from labkit.experiments.execution import Execution
from labkit.experiments.float32 import full_float32
from labkit.experiments.graphed_step import (
    graph_backend,
    graph_counts,
    graph_figures,
    graphed,
    one_of_each_shape,
    with_rows_as_tensor,
)
from labkit.experiments.histories import Histories
from labkit.experiments.model_step import ModelStep, no_silent_eager
from labkit.experiments.representatives import Representatives
from labkit.layouts.collate import collate
from labkit.layouts.device_padding import UnpaddedBatch, pad_on_device
from labkit.layouts.moving import batch_bytes, to_device
from labkit.layouts.packed import PackedDataset
from labkit.models.base import RaggedModel
from labkit.provenance import Figure, Origin

OnStep = Callable[[int, float], object]


@dataclass(eq=False)
class StrategyRun:
    """One strategy on one device.

    Attributes:
        model: on the device; it is trained.
        data: the samples.
        sequences: names of the fields with one entry an event.
        policy: the strategy.
        device: where the model lies.
        execution: how it runs.
        observers: more to watch with, such as the gauges of the device.
        shape: of the batch that is being worked on, in words; for the message when memory is out.
    """

    model: RaggedModel
    data: Histories
    sequences: tuple[str, ...]
    policy: BatchPolicy
    device: torch.device
    execution: Execution
    observers: tuple[Observer, ...] = ()
    shape: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Plan the epoch and make what every batch goes through.

        Raises:
            PolicyError: a policy that does not fit the lengths or has no batch.
        """
        self._sampler = BucketBatchSampler(self.data.lengths, self.policy, seed=self.execution.seed)
        made = collate(self.policy, histogram=self.data.lengths, sequences=self.sequences)
        on_device = self.execution.pad_on_device and self.policy.spec.layout is Layout.PADDED
        self._collate = pad_on_device(made) if on_device else made
        self._dataset: Any = PackedDataset(self.data) if self.policy.spec.layout is Layout.PACKED_ROWS else self.data
        self._step = ModelStep(self.model, self.device, self.execution)
        backend = graph_backend(self.device) if self.policy.strategy is Strategy.BUCKET_GRAPH else None
        self._graphs = None if backend is None else graphed(self._step, backend)
        self._do: Callable[[Any], object] = self._step if self._graphs is None else self._graphs
        self._copied = Copied()
        self._compiling: list[bool] = []  # of each timed step, whether something was compiled in it
        if not len(self.plan):
            raise PolicyError(f"{self.policy.strategy} makes no batch of these {len(self.data)} sequences.")
        whole = self.execution.epoch
        self._order = np.arange(len(self.plan)) if whole else timed_order(self.plan, self.execution.seed)

    @property
    def plan(self) -> EpochPlan:
        """The epoch that is run."""
        return self._sampler.plan

    def batch(self, number: int) -> Any:
        """Batch of that number of the plan, on the host."""
        return self._collate(self._dataset.__getitems__(batch_indices(self.plan, number)))

    def exact_figures(self) -> dict[str, Figure]:
        """What the plan says, before anything has run."""
        plan, exact, what = self.plan, Origin.EXACT, f"exact of the epoch planned with seed {self.execution.seed}"
        return {
            "padding_ratio": Figure(plan.padding_ratio, "1", exact, what),
            "events": Figure(plan.kept_events, "events", exact, what),
            "slots": Figure(plan.slots, "slots", exact, what),
            "batches": Figure(len(plan), "1", exact, what),
        }

    def run(self, on_step: OnStep | None = None) -> dict[str, Figure]:
        """Everything, in order: losses, the largest batch, warm-up, timed steps, the close look.

        Returns:
            Every figure that was found, those of ``exact_figures`` too.

        Raises:
            CompileError: ``compile`` was asked for, and something runs eagerly.
            what the model raises; ``shape`` then says at which batch.
        """
        with full_float32(), no_silent_eager() if self.execution.compile else nullcontext():
            return self._run(on_step)

    def _run(self, on_step: OnStep | None) -> dict[str, Figure]:
        chosen = Representatives.of_plan(self.plan)
        found = self.exact_figures() | self._step.loss_figures(self._at(chosen.batches[-1]))
        # after the losses: a forward pass in float32 must not be the peak of a run in bf16
        look = CloseLook(self._do, self.model, self.device, chosen, compiled=self.execution.compile)
        look.before(self._at)
        if self._graphs is not None:
            self._graphs.prepare(self._at(number) for number in one_of_each_shape(self.plan))
        self._warm_up(chosen, look.steps)
        if self.execution.compile and not self._step.graphs_compiled:
            raise CompileError(
                "torch.compile compiled nothing, every step would run eagerly: measure without --compile."
            )
        compiled, before = self._step.graphs_compiled, graph_counts(self._graphs)
        self._compiling.clear()
        wait = LoaderWait()
        timing = time_steps(
            self._counted_step,
            self._loader(),
            clock=clock_of(self.device),
            seconds=None if self.execution.epoch else self.execution.seconds,
            epoch=len(self.plan),
            observers=(wait, self._copied, *self.observers),
            on_step=on_step,
        )
        found |= graph_figures(self.policy, self._graphs, before, graph_counts(self._graphs))
        whole = self._estimated(timing)
        found |= self._timing_figures(timing, whole)
        for observer in (wait, self._copied, *self.observers):
            found |= self._of_the_epoch(observer.figures(), timing, whole)
        found |= look.after(self._at, found["epoch_s"])
        return found | self._compile_figures(compiled)

    # -- steps --------------------------------------------------------------------------------------------------

    def _at(self, number: int) -> Any:
        """A batch by number, on the device, with its shape remembered."""
        return self._placed(self.batch(number))

    def _placed(self, batch: Any) -> Any:
        self.shape = shape_text(batch)
        if self._graphs is not None:
            batch = with_rows_as_tensor(batch)
        if self.device.type != "cpu":
            self._copied.add(batch_bytes(batch))
            batch = to_device(batch, self.device, non_blocking=True)
        return batch.padded() if isinstance(batch, UnpaddedBatch) else batch

    def _counted_step(self, batch: Any) -> None:
        before = self._step.graphs_compiled
        with nvtx_range(str(self.policy.strategy), "step"):
            self._do(self._placed(batch))
        self._compiling.append(self._step.graphs_compiled > before)

    def _warm_up(self, chosen: Representatives, done: int) -> None:
        """The largest batch first, so that memory runs out now or never; one of each width; the first of the epoch.

        Every width is seen because the first one of a kind loads modules, chooses algorithms, allocates or compiles.
        It does not go on for longer than the timed steps may: a step of ``pad_max`` can take many seconds. A step in
        which something was compiled does not count, or a slow compiler would leave the rest of it to the timed steps.
        """
        widths, spent = dict.fromkeys((chosen.largest, *chosen.batches)), 0.0
        numbers = [*widths, *range(len(self.plan))]
        for number in numbers[done : max(self.execution.warm_up, len(widths))]:
            start, compiled = time.perf_counter(), self._step.graphs_compiled
            self._do(self._at(number))
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            if compiled == self._step.graphs_compiled:
                spent += time.perf_counter() - start
            if spent > self.execution.seconds:
                break

    def _loader(self) -> Iterable[Any]:
        execution, on_gpu = self.execution, self.device.type == "cuda"
        workers: dict[str, Any] = {}
        if execution.workers:
            workers = {"num_workers": execution.workers, "prefetch_factor": execution.prefetch}
        loader: DataLoader[Any] = DataLoader(
            self._dataset,
            batch_sampler=_InOrder(self.plan, self._orders()),
            collate_fn=self._collate,
            pin_memory=on_gpu if execution.pin_memory is None else execution.pin_memory and on_gpu,
            **workers,
        )
        return _closed(iter(loader))  # workers are started now, before the clock

    def _orders(self) -> Iterator[NDArray[np.int64]]:
        """The order of each epoch: one if that is asked for, else without end, a new one each time."""
        yield self._order
        for epoch in count(1) if not self.execution.epoch else ():
            yield np.random.default_rng((self.execution.seed, 5, epoch)).permutation(self._order)

    # -- figures ------------------------------------------------------------------------------------------------

    def _estimated(self, timing: Timing) -> EpochEstimate:
        return estimate_of(self.plan, self._order, timing.step_s, timing.wall_s, self._slow(timing))

    def _slow(self, timing: Timing) -> NDArray[np.bool_]:
        """(n,) steps in which something was compiled."""
        return np.array(self._compiling or [False] * timing.n, dtype=np.bool_)

    @property
    def _stand_in(self) -> str:
        """What ran in the place of the kernels, where they cannot run."""
        if self.policy.strategy is not Strategy.SEGMENTED or self.device.type == "cuda":
            return ""
        return "; torch's implementation of the kernels' ops: CUDA kernels do not run here"

    def _timing_figures(self, timing: Timing, whole: EpochEstimate) -> dict[str, Figure]:
        """Time and throughput: real events, never slots."""
        slow = self._slow(timing)
        kept = replace(timing, step_s=timing.step_s[~slow])
        measured, spread = Origin.MEASURED, kept.spread_s
        compiling = f"; {slow.sum()} more in which something was compiled do not count" if slow.any() else ""
        steps = f"of the steps timed, without the wait for a batch{self._stand_in}"
        return {
            **self._epoch_figures(whole),
            "n": Figure(kept.n, "1", measured, f"steps timed after warm-up, {self.execution.mode}{compiling}"),
            "median_s": Figure(kept.median_s, "s", measured, steps)
            if kept.n
            else Figure(None, "s", None, "something was compiled in every step that was timed"),
            "spread_s": Figure(None, "s", None, "a single step has no spread" if kept.n else "there is no step")
            if spread is None
            else Figure(spread, "s", measured, "distance of the quartiles of the steps"),
        }

    def _epoch_figures(self, whole: EpochEstimate) -> dict[str, Figure]:
        """Those of the whole epoch; without a value where too little of it was seen."""
        units = {"epoch_s": "s", "epoch_error_s": "s", "events_per_s": "events/s"}
        if whole.seconds is None:
            return {name: Figure(None, unit, None, whole.reason) for name, unit in units.items()}
        measured, error = Origin.MEASURED, whole.error
        note = "; ".join(filter(None, (whole.reason, self._stand_in.removeprefix("; ")))) or None
        rate = f"real events, the loader's time included{self._stand_in}"
        return {
            "epoch_s": Figure(whole.seconds, "s", measured, note),
            "epoch_error_s": Figure(error, "s", None if error is None else measured, whole.error_reason),
            "events_per_s": Figure(self.plan.kept_events / whole.seconds, "events/s", measured, rate),
        }

    def _of_the_epoch(self, figures: dict[str, Figure], timing: Timing, whole: EpochEstimate) -> dict[str, Figure]:
        """Sums over the run brought to a whole epoch: bytes by its slots, joules by its time; the rest as it is."""
        epochs, rest = divmod(timing.n, len(self.plan))
        if epochs == 1 and not rest:
            return figures
        done = epochs * self.plan.slots + int(self.plan.batch_slots[self._order[:rest]].sum())
        how_many = f"{timing.n} of {len(self.plan)} batches" if rest else f"{epochs} epochs"
        what = "extrapolated" if rest else "brought to one epoch"
        scales = {
            "copied_bytes": (self.plan.slots / done if done else None, "by slots"),
            "energy_j": (whole.seconds / timing.wall_s if whole.seconds is not None else None, "by time"),
        }
        return figures | {
            name: _scaled(figures[name], scale, f"{what} {how} from {how_many}")
            for name, (scale, how) in scales.items()
            if name in figures and figures[name].value is not None
        }

    def _compile_figures(self, before: int) -> dict[str, Figure]:
        if not self.execution.compile:
            return {"recompiles": Figure(None, "1", None, "torch.compile was not asked for")}
        total = self._step.graphs_compiled
        why = f"graphs compiled while the steps were timed, whose steps do not count; {before} before, dynamic shapes"
        return {"recompiles": Figure(total - before, "1", Origin.MEASURED, why)}


def _scaled(figure: Figure, scale: float | None, note: str) -> Figure:
    if scale is None or figure.value is None:
        return Figure(None, figure.unit, None, f"it cannot be {note}")
    reason = f"{figure.reason}; {note}" if figure.reason else note
    return Figure(figure.value * scale, figure.unit, figure.origin, reason)


class _InOrder(Sampler[list[int]]):
    """Batches of a plan in the orders given, one epoch after the other, as the ``batch_sampler`` of a loader."""

    def __init__(self, plan: EpochPlan, orders: Iterable[NDArray[np.int64]]) -> None:
        self._plan, self._orders = plan, orders

    def __iter__(self) -> Iterator[list[int]]:
        return (batch_indices(self._plan, number) for order in self._orders for number in order.tolist())


def _closed(batches: Any) -> Iterator[Any]:
    """The batches of a loader's iterator; its workers are shut down when the loop ends early."""
    try:
        yield from batches
    finally:
        shut_down = getattr(batches, "_shutdown_workers", None)
        if shut_down is not None:
            shut_down()
