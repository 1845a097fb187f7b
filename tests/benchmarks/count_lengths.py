"""Lengths to histogram, checks included, against the bare count of the same array."""

from __future__ import annotations

import numpy as np

from labkit.lengths.histogram import LengthHistogram
from tests.benchmarks import sizes
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import in_turns


def run(quick: bool) -> Measurement:
    lengths = sizes.lengths(quick)
    found = LengthHistogram.from_lengths(lengths)
    np.testing.assert_array_equal(found.counts, np.bincount(lengths)[found.values])
    pairs = in_turns(
        lambda: LengthHistogram.from_lengths(lengths), lambda: np.bincount(lengths), repeats=5 if quick else 11
    )
    return Measurement.of_pairs(pairs, f"{lengths.size:,} int32 lengths up to {found.max}")


BENCHMARK = Benchmark("histogram", "lengths to histogram against np.bincount", Bar(5), run)
