"""Packing: the what-if of 20 million sequences of 4096 lengths, and the epoch plan against a stable argsort."""

from __future__ import annotations

from functools import partial
from itertools import count

import numpy as np

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import WhatIf, what_if
from labkit.lengths.histogram import LengthHistogram
from tests.benchmarks import sizes
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import in_turns, repeat

#: The longest length, a little more, and two and four of the longest to a pack.
CAPACITIES = (4096, 5000, 8192, 16_384)


_calls = count()


def scored(histogram: LengthHistogram, capacity: int) -> WhatIf:
    """The what-if of other lengths every time, by one sequence, so that nothing can be remembered."""
    counts = histogram.counts.copy()
    counts[0] += next(_calls)
    lengths = LengthHistogram(histogram.values, counts)
    found = what_if(lengths, BatchPolicy("packed", capacity=capacity))
    if found.kept_events != lengths.events or found.packing is None or found.packing.gap > 0.001:
        raise AssertionError("the packs are not what they should be")
    return found


def figures(quick: bool) -> Measurement:
    histogram = sizes.full_histogram(quick)
    calls = [partial(scored, histogram, capacity) for capacity in CAPACITIES]
    samples = [repeat(call, repeats=5 if quick else 15, warm_up=1) for call in calls]
    slowest = max(samples, key=lambda s: s.median)
    medians = ", ".join(f"{capacity}: {1e3 * s.median:.1f} ms" for capacity, s in zip(CAPACITIES, samples, strict=True))
    detail = f"{histogram.sequences:,} sequences, {histogram.distinct} distinct lengths, by capacity ({medians})"
    return Measurement("s", slowest, detail)


def time(quick: bool) -> Measurement:
    lengths, policy = sizes.lengths(quick), BatchPolicy("packed", capacity=sizes.LONGEST)
    plan = plan_epoch(lengths, policy)
    if plan.order.size != lengths.size or plan.events_lost:
        raise AssertionError("the plan is not whole")
    pairs = in_turns(
        lambda: plan_epoch(lengths, policy, seed=1),
        lambda: np.argsort(lengths, kind="stable"),
        repeats=3 if quick else 7,
    )
    return Measurement.of_pairs(pairs, f"{lengths.size:,} sequences, {plan.packs:,} packs, {len(plan):,} batches")


WHAT_IF = Benchmark("packing-what-if", "what-if of packs, new lengths", Bar(50e-3, "s"), figures)
TIME = Benchmark("packing-plan", "epoch plan of packs against np.argsort", Bar(5), time)
