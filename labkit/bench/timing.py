"""Time a loop of steps: warm-up, synchronize, repeat; CUDA events on a GPU, the performance counter on a CPU.

Knows no op and no policy: a step is a callable, a batch is whatever the callable takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from labkit.bench.observers.base import Observer

_T = TypeVar("_T")

#: Steps that the host may be ahead of a GPU. Without a bound, replays of a CUDA graph (one launch a step) would be
#: queued by the hundred, and a run of two seconds would end minutes later.
STEPS_AHEAD = 8


class StepClock(Protocol):
    """Times steps one by one; asynchronous work counts where it runs."""

    def start(self) -> None:
        """A step begins."""

    def stop(self) -> None:
        """The step has been handed over."""

    def synchronize(self) -> None:
        """Wait until all that was handed over is done."""

    def seconds(self) -> NDArray[np.float64]:
        """(n,) duration of each step since the clock was made; after ``synchronize``."""


class CpuClock:
    """The performance counter of the host, for work that is done when the call returns."""

    def __init__(self) -> None:
        """A clock that has timed nothing."""
        self._started = 0.0
        self._seconds: list[float] = []

    def start(self) -> None:
        """A step begins."""
        self._started = time.perf_counter()

    def stop(self) -> None:
        """The step is done."""
        self._seconds.append(time.perf_counter() - self._started)

    def synchronize(self) -> None:
        """Nothing is asynchronous here."""

    def seconds(self) -> NDArray[np.float64]:
        """(n,) duration of each step."""
        return np.array(self._seconds, dtype=np.float64)


class CudaClock:
    """CUDA events on the current stream of a device: the time between them as the GPU saw it.

    Source: CUDA Runtime API, "Event Management": events are resolved to about half a microsecond.
    """

    def __init__(self, device: torch.device) -> None:
        """A clock for the current stream of ``device``."""
        self._device = device
        self._marks: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def start(self) -> None:
        """Mark the begin of a step on the stream."""
        begin, end = _event(), _event()
        begin.record(torch.cuda.current_stream(self._device))
        self._marks.append((begin, end))

    def stop(self) -> None:
        """Mark its end, and wait for the step that was ``STEPS_AHEAD`` before, so that the queue stays short."""
        self._marks[-1][1].record(torch.cuda.current_stream(self._device))
        if len(self._marks) > STEPS_AHEAD:
            self._marks[-1 - STEPS_AHEAD][1].synchronize()

    def synchronize(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize(self._device)

    def seconds(self) -> NDArray[np.float64]:
        """(n,) duration of each step."""
        return np.array([begin.elapsed_time(end) * 1e-3 for begin, end in self._marks], dtype=np.float64)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def clock_of(device: torch.device) -> StepClock:
    """A fresh clock for the work of a device."""
    return CudaClock(device) if device.type == "cuda" else CpuClock()


@dataclass(frozen=True, eq=False, slots=True)
class Timing:
    """A timed run.

    Attributes:
        step_s: (n,) duration of each step.
        wall_s: of the whole run, what lies between the steps included: from one synchronization to the other.
        exhausted: there was no batch left when it ended.
    """

    step_s: NDArray[np.float64]
    wall_s: float
    exhausted: bool

    @property
    def n(self) -> int:
        """Steps."""
        return self.step_s.size

    @property
    def median_s(self) -> float:
        """Median of the steps; there is at least one."""
        return float(np.median(self.step_s))

    @property
    def spread_s(self) -> float | None:
        """Distance of the quartiles of the steps (NumPy's linear rule); None of a single step."""
        if self.n < 2:
            return None
        low, high = np.quantile(self.step_s, (0.25, 0.75))
        return float(high - low)


def time_steps(
    step: Callable[[_T], object],
    batches: Iterable[_T],
    *,
    clock: StepClock,
    warm_up: Iterable[_T] = (),
    seconds: float | None = None,
    epoch: int | None = None,
    observers: Sequence[Observer] = (),
    on_step: Callable[[int, float], object] | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Run steps until the time is over or the batches are: at least one, if there is a batch.

    Args:
        step: does the work of one batch.
        batches: what it is called with.
        clock: times the steps; a fresh one.
        warm_up: batches whose steps come first and are not timed.
        seconds: no step is begun after so long; None: all batches.
        epoch: batches of an epoch, of which ``batches`` are many in a row: after the first one, another is begun only
            if it is expected to end within the seconds, and then it is run whole; None: stop anywhere.
        observers: looked at around the run, the wait for a batch and the step.
        on_step: called after each step with the steps done and the seconds since the start.
        now: the wall clock.

    Raises:
        ValueError: there was no batch.
    """
    for batch in warm_up:
        step(batch)
    clock.synchronize()
    for observer in observers:
        observer.before_run()
    exhausted, done, start = True, 0, now()
    for batch in _waited(batches, observers):
        clock.start()
        step(batch)
        clock.stop()
        for observer in observers:
            observer.after_step()
        done += 1
        passed = now() - start
        if on_step is not None:
            on_step(done, passed)
        if seconds is not None and _is_over(done, passed, seconds, epoch):
            exhausted = False
            break
    clock.synchronize()
    wall = now() - start
    for observer in observers:
        observer.after_run()
    if not done:
        raise ValueError("there is no batch to time: expected at least one, got none")
    return Timing(clock.seconds(), wall, exhausted)


def _is_over(done: int, passed: float, seconds: float, epoch: int | None) -> bool:
    if epoch is None or done < epoch:
        return passed >= seconds
    return done % epoch == 0 and passed * (done + epoch) / done > seconds


def _waited(batches: Iterable[_T], observers: Sequence[Observer]) -> Iterator[_T]:
    """The batches, with the observers told of the wait for each and of its end."""
    iterator = iter(batches)
    while True:
        for observer in observers:
            observer.before_wait()
        try:
            batch = next(iterator)
        except StopIteration:
            return
        for observer in observers:
            observer.before_step()
        yield batch
