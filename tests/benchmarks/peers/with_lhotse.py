"""Lhotse: its edges and its sampler, an event standing for a second.

In its favour: a cut is an object with a duration and nothing else to build or to copy, the edges are estimated on all
sequences and not on the first 10 000, and they are given to the sampler, so that an epoch does not estimate them again.
``buffer_size`` is Lhotse's default.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.peers.samplers import Prepared

SEED = 1


class Cut:
    """What Lhotse's sampler asks of a cut, and the index of the sequence."""

    __slots__ = ("dataloading_info", "duration", "id", "index")

    def __init__(self, index: int, duration: int) -> None:
        self.index = index
        self.duration = duration
        self.id = str(index)


def cuts(lengths: NDArray[np.int32]) -> list[Cut]:
    return [Cut(index, length) for index, length in enumerate(lengths.tolist())]


def edges(lengths: NDArray[np.int32], buckets: int) -> list[float]:
    """Lower-inclusive boundaries of the buckets after the first."""
    from lhotse.dataset.sampling.dynamic_bucketing import estimate_duration_buckets

    return [float(bound) for bound in estimate_duration_buckets(cuts(lengths), buckets)]


def prepare(lengths: NDArray[np.int32], buckets: int, budget: int) -> Prepared:
    """``DynamicBucketingSampler`` with ``max_duration``: rows x longest is held against the budget."""
    from lhotse.dataset.sampling.dynamic_bucketing import DynamicBucketingSampler

    sequences, bins = cuts(lengths), edges(lengths, buckets)

    def plan() -> list[Sequence[Cut]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "the buffer might be too low for the budget": it is the default
            return list(
                DynamicBucketingSampler(sequences, max_duration=budget, duration_bins=bins, shuffle=True, seed=SEED)
            )

    return Prepared(plan, lambda found: [[cut.index for cut in batch] for batch in found])
