"""labkit, called as its users call it; the edges are found once, off the clock, like those of the peers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.batching.edges import optimal_edges
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.lengths.histogram import LengthHistogram
from tests.benchmarks.peers.samplers import Prepared

SEED = 1


def prepare_budget(lengths: NDArray[np.int32], buckets: int, budget: int) -> Prepared:
    return _prepare(lengths, BatchPolicy("bucket_budget", bucket_edges=_edges(lengths, buckets), token_budget=budget))


def prepare_rows(lengths: NDArray[np.int32], buckets: int, rows: int) -> Prepared:
    return _prepare(lengths, BatchPolicy("bucket_rows", bucket_edges=_edges(lengths, buckets), rows=rows))


def _edges(lengths: NDArray[np.int32], buckets: int) -> tuple[int, ...]:
    return optimal_edges(LengthHistogram.from_lengths(lengths), buckets).edges


def _prepare(lengths: NDArray[np.int32], policy: BatchPolicy) -> Prepared:
    return Prepared(lambda: list(plan_epoch(lengths, policy, seed=SEED)))
