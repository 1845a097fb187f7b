"""An epoch plan with a token budget, all batches counted: time against a stable argsort, and traced memory.

For one process, and for the last of eight ranks, which makes the plan of all of them and takes its part.
"""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
from numpy.typing import NDArray

from labkit.batching.edges import optimal_edges
from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.lengths.histogram import LengthHistogram
from tests.benchmarks import sizes
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import Samples, in_turns


def prepared(quick: bool) -> tuple[NDArray[np.int32], BatchPolicy]:
    lengths = sizes.lengths(quick)
    edges = optimal_edges(LengthHistogram.from_lengths(lengths), 8).edges
    return lengths, BatchPolicy("bucket_budget", bucket_edges=edges, token_budget=16_384)


def counted(lengths: NDArray[np.int32], policy: BatchPolicy, ranks: int) -> EpochPlan:
    """The plan of the last rank, with its batches and slots counted."""
    plan = plan_epoch(lengths, policy, seed=1, rank=ranks - 1, world_size=ranks)
    whole = plan.all_ranks.sequences_dropped == 0 and plan.order.size >= lengths.size // (2 * ranks)
    if plan.batches != len(plan) or plan.slots < plan.kept_events or not whole:
        raise AssertionError("the plan is not whole")
    return plan


def time(quick: bool, ranks: int) -> Measurement:
    lengths, policy = prepared(quick)
    pairs = in_turns(
        lambda: counted(lengths, policy, ranks), lambda: np.argsort(lengths, kind="stable"), repeats=3 if quick else 7
    )
    detail = f"{lengths.size:,} sequences, 8 optimal edges, {len(counted(lengths, policy, ranks)):,} batches a rank"
    return Measurement.of_pairs(pairs, detail)


def memory(quick: bool, ranks: int) -> Measurement:
    lengths, policy = prepared(quick=False)  # a peak of a small plan is that of its chunks
    peaks = tuple(_traced_peak(lengths, policy, ranks) for _ in range(1 if quick else 3))
    detail = f"{lengths.size:,} sequences; tracemalloc's peak, the result included, over the bytes of the int32 lengths"
    own, reference = Samples(peaks), Samples((float(lengths.nbytes),))
    return Measurement("bytes", own, detail, ratio=max(peaks) / lengths.nbytes, reference=reference)


def _traced_peak(lengths: NDArray[np.int32], policy: BatchPolicy, ranks: int) -> float:
    tracemalloc.start()
    try:
        plan = counted(lengths, policy, ranks)
        peak = tracemalloc.get_traced_memory()[1]
        del plan
    finally:
        tracemalloc.stop()
    return float(peak)


RANKS = 8

TIME = Benchmark("plan-time", "epoch plan against np.argsort", Bar(3), partial(time, ranks=1))
MEMORY = Benchmark("plan-memory", "epoch plan, traced peak against the lengths", Bar(8), partial(memory, ranks=1))
RANK_TIME = Benchmark("rank-time", "plan of one of 8 ranks against np.argsort", Bar(3), partial(time, ranks=RANKS))
RANK_MEMORY = Benchmark("rank-memory", "plan of one of 8 ranks, traced peak", Bar(8), partial(memory, ranks=RANKS))
