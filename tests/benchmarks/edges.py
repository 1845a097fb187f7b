"""The best edges for every number of buckets up to 64."""

from __future__ import annotations

from labkit.batching.edges import optimal_edges
from tests.benchmarks import sizes
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import repeat

BUCKETS = 64


def run(quick: bool) -> Measurement:
    histogram = sizes.full_histogram(quick)
    curve = optimal_edges(histogram, BUCKETS).curve
    if curve is None or len(curve) != BUCKETS:
        raise AssertionError("the curve is not whole")
    samples = repeat(lambda: optimal_edges(histogram, BUCKETS), repeats=5 if quick else 21, warm_up=2)
    return Measurement("s", samples, f"{histogram.distinct} distinct lengths, every K <= {BUCKETS}, warm")


BENCHMARK = Benchmark("optimal-edges", "optimal edges, whole curve", Bar(0.1, "s"), run)
