"""Several things timed in turns: what slows the machine down for a while slows all of a round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

from tests.benchmarks.timing import Call, Clock, Samples, repeat


def in_rounds(calls: Mapping[str, Call], repeats: int, *, clock: Clock = time.perf_counter) -> dict[str, Samples]:
    """Time each call once a round, another one first each time. Warm up before: every time counts."""
    names = list(calls)
    values: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeats):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            values[name] += repeat(calls[name], 1, warm_up=0, clock=clock).values
    return {name: Samples(tuple(found)) for name, found in values.items()}


def times_faster(own: Samples, other: Samples) -> float:
    """How many times the seconds of ``other`` those of ``own`` fit into: the median over rounds."""
    return statistics.median(b / a for a, b in zip(own.values, other.values, strict=True))
