"""The data that benchmarks share: sequences at the scale of a large recommender, up to 4096 events long."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.lengths.generate import power_law
from labkit.lengths.histogram import LengthHistogram

LONGEST = 4096


def sequences(quick: bool) -> int:
    return 1_000_000 if quick else 20_000_000


def lengths(quick: bool) -> NDArray[np.int32]:
    """(N,) int32, a bounded power law."""
    return power_law(sequences(quick), alpha=1.6, max_length=LONGEST, seed=1)


def full_histogram(quick: bool) -> LengthHistogram:
    """As many sequences with every length 1 .. 4096 among them, so that nothing is cheaper than it can be."""
    values = np.arange(1, LONGEST + 1)
    counts = np.maximum(1, (sequences(quick) / 2.3 * values**-1.6).astype(np.int64))
    counts[0] += sequences(quick) - counts.sum()
    return LengthHistogram(values, counts)
