"""A DIN training step on the CPU: what is saved in slots, is it saved in time? And our jagged pooling against torch's.

The batches are made before the clock starts: a loader with workers hides making them, and ``labkit measure`` shows
where it does not. Each pair is a step of ``pad_max`` (256 rows) beside steps of the strategy. On one thread and by its
processor time, which is wall time on a quiet machine: with more threads, a neighbour that takes a core makes every
short op of a small batch wait for it.

FBGEMM's CPU wheel is no peer here: the newest, fbgemm-gpu-cpu 1.9.0, does not load beside torch 2.13 (2026-11).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nested import nested_tensor_from_jagged

from labkit.batching.pieces import batch_indices
from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.strategies import Layout, Strategy
from labkit.experiments.execution import Execution
from labkit.experiments.histories import sampled_lengths, synthetic
from labkit.experiments.lineup import Lineup
from labkit.experiments.model_step import ModelStep
from labkit.layouts.batch import Batch
from labkit.layouts.collate import collate
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.segments import row_ids
from labkit.lengths.generate import power_law
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import preset
from labkit.models.din import Din
from labkit.models.inputs import example_batch
from labkit.models.registry import Model, model_spec
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import Pairs, in_turns

LONGEST = 512
SEQUENCES = 100_000  # of the made-up data; the real ones are taken whole
REAL = ("cdnow", "household-lines", "basket-items", "ml-100k")
BATCHES = 4  # of a strategy, evenly spread over its plan
SPEC = model_spec(Model.DIN)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Some batches of a plan, their slots, and the whole plan."""

    batches: tuple[Batch, ...]
    slots: int
    plan: EpochPlan


@cache
def lengths_of(name: str) -> NDArray[np.int64]:
    """(N,) at most 512, the longest of the data among them."""
    if name == "zipf 1.6":
        lengths = power_law(SEQUENCES, alpha=1.6, max_length=LONGEST, seed=1)
        lengths[0] = LONGEST
        return lengths.astype(np.int64)
    histogram = preset(name)
    return np.minimum(sampled_lengths(histogram, histogram.sequences, seed=1), LONGEST)


def prepared(lengths: NDArray[np.int64], strategy: Strategy, most: int) -> Prepared:
    """Batches of random ids, evenly spread over the plan, so that every width has its share."""
    histogram = LengthHistogram.from_lengths(lengths)
    lineup = Lineup()
    policy = lineup.policy(strategy, lineup.edges(histogram) if strategy is Strategy.BUCKET_BUDGET else None)
    plan = plan_epoch(lengths, policy, seed=1)
    data, stacked = synthetic(SPEC, lengths, seed=1), collate(policy, histogram=histogram, sequences=SPEC.sequences)
    chosen = np.unique(np.linspace(0, len(plan) - 1, min(most, len(plan))).astype(int))
    batches = tuple(stacked(data.__getitems__(batch_indices(plan, int(i)))) for i in chosen)
    return Prepared(batches, int(plan.batch_slots[chosen].sum()), plan)


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def steps(step: Callable[[Batch], object], batches: tuple[Batch, ...]) -> Callable[[], None]:
    def run() -> None:
        for batch in batches:
            step(batch)

    return run


def saved_share(name: str, strategy: Strategy, repeats: int) -> tuple[float, Pairs, str]:
    """Real events a second over those of pad_max, as a share of the ratio of their slots."""
    lengths = lengths_of(name)
    own, padded = prepared(lengths, strategy, BATCHES), prepared(lengths, Strategy.PAD_MAX, 1)
    step = ModelStep(SPEC.build(), torch.device("cpu"), Execution())
    pairs = in_turns(steps(step, own.batches), steps(step, padded.batches), repeats, clock=time.process_time)
    # events/s are slots/s times the events in a slot, of which there are as many more as there are slots fewer
    share = (own.slots / padded.slots) / pairs.ratio
    slots = padded.plan.slots / own.plan.slots
    return share, pairs, f"{name} {share * slots:.1f} of {slots:.1f} x ({share:.2f})"


def of_strategy(strategy: Strategy) -> Callable[[bool], Measurement]:
    def run(quick: bool) -> Measurement:
        names = ("cdnow",) if quick else (*REAL, "zipf 1.6")
        with one_thread():
            found = [saved_share(name, strategy, repeats=1 if quick else 3) for name in names]
        worst, pairs, _ = min(found, key=lambda each: each[0])
        detail = (
            f"events/s over pad_max's, of the ratio of their slots; the worst counts: "
            f"{', '.join(note for _, _, note in found)}"
        )
        return Measurement("s", pairs.own, detail, ratio=worst, reference=pairs.reference)

    return run


class NestedDin(Din):
    """The same model, whose softmax and pooling are those of torch's nested jagged tensors."""

    def _pooled(self, events: Tensor, target: Tensor, ids: Tensor, rows: int) -> Tensor:
        batch = self.batch
        nested = [
            nested_tensor_from_jagged(values, batch.offsets, min_seqlen=0, max_seqlen=batch.longest)
            for values in (self._scores(events, target)[:, None], events)
        ]
        weights = torch.softmax(nested[0], dim=1)
        return torch.matmul(weights.transpose(1, 2), nested[1]).squeeze(1)  # sum(dim=1) has no backward yet

    def _interest(self, batch: Batch, events: Tensor, target: Tensor) -> Tensor:
        assert isinstance(batch, JaggedBatch)
        self.batch = batch
        ids = row_ids(batch.offsets, events.shape[0])
        return self._pooled(events, target[ids], ids, target.shape[0])


def against_nested(quick: bool) -> Measurement:
    """A whole training step each, with the same weights and batch; the outputs are compared first."""
    lengths = lengths_of("zipf 1.6")
    lengths = lengths[np.cumsum(lengths) <= 16_384]
    batch = example_batch(SPEC, Layout.JAGGED, lengths)
    assert isinstance(batch, JaggedBatch)
    batch = batch._replace(longest=int(lengths.max()))
    own, nested = Din(), NestedDin()
    nested.load_state_dict(own.state_dict())
    torch.testing.assert_close(own(batch), nested(batch), rtol=1e-4, atol=1e-5)
    run, reference = (ModelStep(model, torch.device("cpu"), Execution()) for model in (own, nested))
    repeats = 3 if quick else 15
    with one_thread():
        pairs = in_turns(lambda: run(batch), lambda: reference(batch), repeats, warm_up=2, clock=time.process_time)
    return Measurement.of_pairs(pairs, f"{len(lengths)} rows, {lengths.sum():,} events, forward, backward and SGD")


BUCKETS = Benchmark(
    "din-buckets",
    "DIN step, bucket_budget against pad_max, of what slots promise",
    Bar(0.5, least=True),
    of_strategy(Strategy.BUCKET_BUDGET),
)
JAGGED = Benchmark(
    "din-jagged",
    "DIN step, jagged against pad_max, of what slots promise",
    Bar(0.5, least=True),
    of_strategy(Strategy.JAGGED),
)
NESTED = Benchmark("din-nested", "DIN step, jagged against torch nested jagged", Bar(1), against_nested)
