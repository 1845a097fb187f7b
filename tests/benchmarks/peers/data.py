"""The lengths that all are measured on: four real histograms and three laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.lengths.generate import Constant, Lognormal, lognormal, mixture, power_law
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import preset

REAL = ("cdnow", "household-lines", "basket-items", "ml-100k")
DRAWN = ("zipf", "lognormal", "capped")

#: What the drawn ones are, for the notes under the tables.
LAWS = (
    "zipf: P(length) ~ length^-1.2, 1 .. 4096; lognormal: median 40, sigma 1, at most 4096; "
    "capped: 70 % lognormal of median 8, 30 % at the cap of 512"
)


@dataclass(frozen=True)
class DataSet:
    """Lengths under a name, in no order."""

    key: str
    lengths: NDArray[np.int32]
    histogram: LengthHistogram


def data_set(key: str, quick: bool) -> DataSet:
    lengths = _real(key) if key in REAL else _drawn(key, 20_000 if quick else 200_000)
    return DataSet(key, lengths, LengthHistogram.from_lengths(lengths))


def _real(key: str) -> NDArray[np.int32]:
    """Every sequence of a histogram, shuffled: some peers look at the first ones only."""
    histogram = preset(key)
    lengths = np.repeat(histogram.values, histogram.counts).astype(np.int32)
    np.random.default_rng(1).shuffle(lengths)
    return lengths


def _drawn(key: str, n: int) -> NDArray[np.int32]:
    match key:
        case "zipf":
            return power_law(n, alpha=1.2, max_length=4096, seed=1)
        case "lognormal":
            return lognormal(n, median=40, sigma=1, max_length=4096, seed=1)
        case "capped":
            short = Lognormal(weight=70, median=8, sigma=1, max_length=512)
            return mixture(n, parts=[short, Constant(weight=30, length=512)], seed=1)
        case _:
            raise ValueError(f"no lengths are called {key!r}: use one of {', '.join(REAL + DRAWN)}")
