"""One move of a slider: policies of every strategy with a moved edge and budget, and the what-if of each.

The packs depend on neither and are remembered, as they are in the panel; what they cost anew is in ``packing``.
"""

from __future__ import annotations

from itertools import count

from labkit.batching.strategies import Strategy
from labkit.batching.what_if import WhatIf, what_if
from labkit.experiments.lineup import Lineup, policies
from tests.benchmarks import sizes
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import repeat


def run(quick: bool) -> Measurement:
    histogram = sizes.full_histogram(quick)
    moves = count()

    def move() -> list[WhatIf]:
        # another place every time, so that nothing can be remembered
        step = next(moves)
        edges = (2, 5, 12, 30, 40 + step % 1000, 1200, 2500, histogram.max)
        lineup = Lineup(bucket_edges=edges, token_budget=16_384 + step)
        return [what_if(histogram, policy) for policy in policies(histogram, lineup)]

    if len(move()) != len(Strategy):
        raise AssertionError("a strategy is missing")
    samples = repeat(move, repeats=20 if quick else 200, warm_up=5)
    detail = f"{histogram.sequences:,} sequences, {histogram.distinct} distinct lengths, {len(Strategy)} strategies"
    return Measurement("s", samples, detail)


BENCHMARK = Benchmark("slider-move", "one slider move, all strategies", Bar(5e-3, "s"), run)
