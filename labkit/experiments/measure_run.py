"""One strategy, run and watched: loader, warm-up, timed steps, the close look, and the figures of a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import DataLoader

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
from labkit.experiments.batch_facts import batch_events, shape_text
from labkit.experiments.close_look import CloseLook
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
        self._events = 0
        if not len(self.plan):
            raise PolicyError(f"{self.policy.strategy} makes no batch of these {len(self.data)} sequences.")

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
        wait = LoaderWait()
        timing = time_steps(
            self._counted_step,
            self._loader(),
            clock=clock_of(self.device),
            seconds=None if self.execution.epoch else self.execution.seconds,
            observers=(wait, self._copied, *self.observers),
            on_step=on_step,
        )
        found |= graph_figures(self.policy, self._graphs, before, graph_counts(self._graphs))
        found |= self._timing_figures(timing)
        for observer in (wait, self._copied, *self.observers):
            found |= self._of_the_epoch(observer.figures(), timing)
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
        self._events += batch_events(batch)
        with nvtx_range(str(self.policy.strategy), "step"):
            self._do(self._placed(batch))

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
            batch_sampler=self._sampler,
            collate_fn=self._collate,
            pin_memory=on_gpu if execution.pin_memory is None else execution.pin_memory and on_gpu,
            **workers,
        )
        return _closed(iter(loader))  # workers are started now, before the clock

    # -- figures ------------------------------------------------------------------------------------------------

    def _share_note(self, timing: Timing) -> str | None:
        plan = self.plan
        if timing.n == len(plan):
            return None
        return (
            f"extrapolated from {timing.n} of {len(plan)} batches, {self._events} of {plan.kept_events} events, "
            "at the rate of real events measured"
        )

    @property
    def _stand_in(self) -> str:
        """What ran in the place of the kernels, where they cannot run."""
        if self.policy.strategy is not Strategy.SEGMENTED or self.device.type == "cuda":
            return ""
        return "; torch's implementation of the kernels' ops: CUDA kernels do not run here"

    def _timing_figures(self, timing: Timing) -> dict[str, Figure]:
        """Time and throughput: real events, never slots."""
        measured, rate = Origin.MEASURED, self._events / timing.wall_s
        note = self._share_note(timing)
        epoch_s = timing.wall_s if note is None else self.plan.kept_events / rate if rate else None
        note = "; ".join(filter(None, (note, self._stand_in.removeprefix("; ")))) or None
        spread = timing.spread_s
        return {
            "epoch_s": Figure(epoch_s, "s", measured, note)
            if epoch_s is not None
            else Figure(None, "s", None, "the batches that were run hold no event, so there is no rate"),
            "events_per_s": Figure(
                rate, "events/s", measured, f"real events, the loader's time included{self._stand_in}"
            ),
            "n": Figure(timing.n, "1", measured, f"steps timed after warm-up, {self.execution.mode}"),
            "median_s": Figure(
                timing.median_s, "s", measured, f"of a step, without the wait for its batch{self._stand_in}"
            ),
            "spread_s": Figure(None, "s", None, "a single step has no spread")
            if spread is None
            else Figure(spread, "s", measured, "distance of the quartiles of the steps"),
        }

    def _of_the_epoch(self, figures: dict[str, Figure], timing: Timing) -> dict[str, Figure]:
        """Sums over the run, of bytes and joules, brought to a whole epoch; shares stay as they are."""
        note = self._share_note(timing)
        if note is None or not self._events:
            return figures
        scale = self.plan.kept_events / self._events
        return {
            name: Figure(f.value * scale, f.unit, f.origin, f"{f.reason}; {note}" if f.reason else note)
            if name in _SUMS and f.value is not None
            else f
            for name, f in figures.items()
        }

    def _compile_figures(self, before: int) -> dict[str, Figure]:
        if not self.execution.compile:
            return {"recompiles": Figure(None, "1", None, "torch.compile was not asked for")}
        total = self._step.graphs_compiled
        why = f"graphs compiled while the steps were timed; {before} before, dynamic shapes"
        return {"recompiles": Figure(total - before, "1", Origin.MEASURED, why)}


#: Figures of observers that add up over a run.
_SUMS = ("copied_bytes", "energy_j")


def _closed(batches: Any) -> Iterator[Any]:
    """The batches of a loader's iterator; its workers are shut down when the loop ends early."""
    try:
        yield from batches
    finally:
        shut_down = getattr(batches, "_shutdown_workers", None)
        if shut_down is not None:
            shut_down()
