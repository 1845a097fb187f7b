"""Repeated timings that survive a noisy machine: warm-up, no garbage collection, and A beside B in turns."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Call = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Samples:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float | None:
        """Distance of the quartiles; None of a single value."""
        if len(self.values) < 2:
            return None
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return high - low


@dataclass(frozen=True)
class Pairs:
    """A and its reference, measured in turns. What slows the machine down for a while slows both of a pair."""

    own: Samples
    reference: Samples

    @property
    def ratio(self) -> float:
        """Median of the ratios of the pairs."""
        return statistics.median(a / b for a, b in zip(self.own.values, self.reference.values, strict=True))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect before, and not while the clock runs."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def repeat(call: Call, repeats: int, *, warm_up: int = 1, clock: Clock = time.perf_counter) -> Samples:
    """Time ``call`` that often, after as many calls as ``warm_up`` that are not timed."""
    for _ in range(warm_up):
        call()
    with no_garbage_collection():
        return Samples(tuple(_seconds(call, clock) for _ in range(repeats)))


def in_turns(own: Call, reference: Call, repeats: int, *, warm_up: int = 1, clock: Clock = time.perf_counter) -> Pairs:
    """Time both in pairs; every other pair starts with the reference, so that neither is always second."""
    for _ in range(warm_up):
        own()
        reference()
    pairs = []
    with no_garbage_collection():
        for i in range(repeats):
            if i % 2:
                after = _seconds(reference, clock)
                pairs.append((_seconds(own, clock), after))
            else:
                before = _seconds(own, clock)
                pairs.append((before, _seconds(reference, clock)))
    return Pairs(Samples(tuple(a for a, _ in pairs)), Samples(tuple(b for _, b in pairs)))


def _seconds(call: Call, clock: Clock) -> float:
    start = clock()
    result = call()
    seconds = clock() - start
    del result  # freed off the clock, but before the next call: two results at once would double the memory
    return seconds
