"""SpeechBrain: edges at the quantiles of a lognormal law of sigma 1, and the sampler that uses them.

In its favour: the law is scaled to the longest sequence (the sampler itself scales it to the budget, far above any
sequence), and the sampler is built off the clock: only ``set_epoch`` is timed, which makes the batches of an epoch.

SpeechBrain imports torchaudio, whose newest release needs another torch than the one here. The sampler never calls it:
while SpeechBrain is imported an empty module stands in for it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.peers.samplers import Prepared

SEED = 1


@contextmanager
def _no_audio() -> Iterator[None]:
    """An empty torchaudio, for as long as this lasts, where there is none."""
    if "torchaudio" in sys.modules or importlib.util.find_spec("torchaudio"):
        yield
        return
    os.environ.setdefault("SB_LOG_LEVEL", "ERROR")  # it would warn of the empty module
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    try:
        yield
    finally:
        del sys.modules["torchaudio"]


def _sampler() -> Any:
    with _no_audio():
        from speechbrain.dataio.sampler import DynamicBatchSampler
    return DynamicBatchSampler


def edges(lengths: NDArray[np.int32], buckets: int) -> list[float]:
    """Upper-inclusive boundaries, the last of them the longest sequence."""
    longest = int(lengths.max())
    # a method that asks nothing of its object
    bounds = _sampler()._get_boundaries_through_warping(None, max_batch_length=longest, num_quantiles=buckets)
    return [*map(float, bounds[:-1]), float(longest)]  # the last is the longest but for rounding


def prepare(lengths: NDArray[np.int32], buckets: int, budget: int) -> Prepared:
    """``DynamicBatchSampler``: a bucket has ``budget // edge`` rows."""
    sampler = _sampler()(
        range(lengths.size),
        max_batch_length=budget,
        bucket_boundaries=edges(lengths, buckets),
        lengths_list=lengths.tolist(),
        seed=SEED,
    )

    def plan() -> list[list[int]]:
        sampler.set_epoch(1)
        return list(islice(iter(sampler), len(sampler)))

    return Prepared(plan)
