"""Making batches, no model: histories fetched and collated as columns against the same histories one by one.

A whole epoch goes through a DataLoader without workers, as in ``labkit measure``: indices from the sampler, samples of
the data set, tensors from collate. Both sides do all of it; they differ in how the data set hands over a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.strategies import STRATEGIES, Layout, Strategy
from labkit.experiments.histories import Histories, sampled_lengths, synthetic
from labkit.experiments.lineup import Lineup
from labkit.layouts.batch import Batch
from labkit.layouts.collate import collate
from labkit.layouts.packed import PackedDataset
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import preset
from labkit.models.registry import Model, model_spec
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import Pairs, in_turns

SEQUENCES = 20_000  # at most, as labkit measure makes up by default
SPEC = model_spec(Model.DIN)


class OneByOne:
    """The same histories as any data set gives them: a list of samples, each a mapping of field names to views."""

    def __init__(self, data: Histories) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        data = self.data
        low, high = data.offsets[indices].tolist(), data.offsets[np.asarray(indices) + 1].tolist()
        return [
            {name: values[a:b] for name, values in data.events.items()}
            | {name: values[i] for name, values in data.rows.items()}
            for i, a, b in zip(indices, low, high, strict=True)
        ]


def loaders(name: str, strategy: Strategy) -> tuple[DataLoader[Any], DataLoader[Any], int]:
    """The loader of columns, that of rows, and the events of an epoch."""
    lengths = sampled_lengths(preset(name), SEQUENCES, seed=1)
    histogram, lineup = LengthHistogram.from_lengths(lengths), Lineup()
    policy = lineup.policy(strategy, lineup.edges(histogram) if "bucket_edges" in STRATEGIES[strategy].fields else None)
    made, data = collate(policy, histogram=histogram, sequences=SPEC.sequences), synthetic(SPEC, lengths, seed=1)

    def loader(samples: Any) -> DataLoader[Any]:
        sampler = BucketBatchSampler(lengths, policy, seed=1)
        wrapped = PackedDataset(samples) if policy.spec.layout is Layout.PACKED_ROWS else samples
        return DataLoader(wrapped, batch_sampler=_Again(sampler), collate_fn=made)

    return loader(data), loader(OneByOne(data)), int(lengths.sum())


class _Again:
    """The first epoch, as often as it is asked for."""

    def __init__(self, sampler: BucketBatchSampler) -> None:
        self.sampler = sampler

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Any:
        self.sampler.set_epoch(0)
        return iter(self.sampler)


def walk(loader: DataLoader[Any]) -> Callable[[], None]:
    def run() -> None:
        for _ in loader:
            pass

    return run


def refuse_differences(own: Batch, other: Batch) -> None:
    """Raise unless both batches are equal to the last bit."""
    torch.testing.assert_close(own._asdict(), other._asdict(), rtol=0, atol=0)


def columns_against_rows(name: str, strategy: Strategy, quick: bool) -> tuple[Pairs, str]:
    own, other, events = loaders(name, strategy)
    for mine, theirs in zip(own, other, strict=True):
        refuse_differences(mine, theirs)
    pairs = in_turns(walk(own), walk(other), 3 if quick else 9, clock=time.process_time)
    rate, before = events / pairs.own.median, events / pairs.reference.median
    return pairs, f"{strategy} {rate / 1e6:.1f} against {before / 1e6:.2f} million ({1 / pairs.ratio:.1f} x)"


def of_data(name: str, *strategies: Strategy) -> Callable[[bool], Measurement]:
    """The strategy that gains least counts."""

    def run(quick: bool) -> Measurement:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in a worker of a DataLoader
        try:
            found = [columns_against_rows(name, strategy, quick) for strategy in strategies]
        finally:
            torch.set_num_threads(threads)
        pairs, _ = max(found, key=lambda each: each[0].ratio)
        detail = f"{name}, events/s, one thread, by its processor time: {', '.join(note for _, note in found)}"
        return Measurement("s", pairs.own, detail, ratio=1 / pairs.ratio, reference=pairs.reference)

    return run


def benchmark(name: str, what: str, least: float, run: Callable[[bool], Measurement]) -> Benchmark:
    return Benchmark(f"loader-{name}", f"batches from columns, {what}, rate over rows", Bar(least, least=True), run)


PADDED = benchmark("padded", "cdnow bucket_budget", 15, of_data("cdnow", Strategy.BUCKET_BUDGET))
JAGGED = benchmark("jagged", "cdnow jagged", 20, of_data("cdnow", Strategy.JAGGED))
#: The indices of packs are Python objects, one a piece: most of what is left.
PACKED = benchmark("packed", "cdnow packed", 4, of_data("cdnow", Strategy.PACKED))
#: A hundred events a row: there is less to save, and nothing may be lost.
LONG = benchmark(
    "long", "ml-100k, all three", 1.5, of_data("ml-100k", Strategy.BUCKET_BUDGET, Strategy.JAGGED, Strategy.PACKED)
)
