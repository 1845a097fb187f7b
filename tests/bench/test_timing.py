"""Timing: what is timed, in which order, and when it ends; on a clock that the test turns itself."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.bench.observers.base import Observer
from labkit.bench.timing import CpuClock, Timing, time_steps


class HandTurned:
    """A wall clock and a step clock in one; a step takes what its batch says."""

    def __init__(self) -> None:
        self.now, self.started, self.found, self.synchronized = 0.0, 0.0, [], 0

    def start(self) -> None:
        self.started = self.now

    def stop(self) -> None:
        self.found.append(self.now - self.started)

    def synchronize(self) -> None:
        self.synchronized += 1

    def seconds(self) -> np.ndarray:
        return np.array(self.found)

    def work(self, seconds: float) -> None:
        self.now += seconds


def run(clock: HandTurned, batches: list[float], **options: object) -> Timing:
    return time_steps(clock.work, batches, clock=clock, now=lambda: clock.now, **options)


def test_warm_up_is_not_timed_and_the_clock_is_read_between_two_synchronizations() -> None:
    clock = HandTurned()
    timing = run(clock, [1, 2, 4, 8], warm_up=[100, 100])
    assert timing.step_s.tolist() == [1, 2, 4, 8]
    # 1 2 4 8: median 3; quartiles 1.75 and 5
    assert (timing.n, timing.wall_s, timing.median_s, timing.spread_s) == (4, 15, 3, 3.25)
    assert timing.exhausted
    assert clock.synchronized == 2


@pytest.mark.parametrize(("seconds", "done"), [(0, 1), (1, 1), (1.5, 2), (100, 3)])
def test_no_step_is_begun_after_the_time_and_one_is_always_done(seconds: float, done: int) -> None:
    timing = run(HandTurned(), [1, 1, 1], seconds=seconds)
    assert timing.n == done
    assert timing.exhausted is (done == 3 and seconds == 100)


@pytest.mark.parametrize(
    ("seconds", "done"),
    # epochs of 3 steps of a second: a part, one, one because the second would end too late, two, three
    [(2, 2), (3, 3), (5.9, 3), (6, 6), (9, 9), (10, 9)],
)
def test_after_the_first_epoch_only_whole_ones_that_end_in_time_are_run(seconds: float, done: int) -> None:
    assert run(HandTurned(), [1] * 100, seconds=seconds, epoch=3).n == done


def test_an_epoch_that_was_begun_is_ended_however_long_it_takes() -> None:
    assert run(HandTurned(), [1, 1, 1, 50, 1, 1, 1], seconds=6, epoch=3).n == 6


def test_a_single_step_has_no_spread() -> None:
    assert run(HandTurned(), [1]).spread_s is None


def test_nothing_to_time_is_an_error_and_no_zero() -> None:
    with pytest.raises(ValueError, match="no batch to time"):
        run(HandTurned(), [])


def test_observers_see_waits_and_steps_in_order_and_not_the_warm_up() -> None:
    seen: list[str] = []

    class Diary(Observer):
        def before_run(self) -> None:
            seen.append("run")

        def before_wait(self) -> None:
            seen.append("wait")

        def before_step(self) -> None:
            seen.append("step")

        def after_step(self) -> None:
            seen.append("done")

        def after_run(self) -> None:
            seen.append("end")

    run(HandTurned(), [1, 1], warm_up=[1], observers=[Diary()])
    assert seen == ["run", "wait", "step", "done", "wait", "step", "done", "wait", "end"]


def test_progress_tells_steps_and_seconds() -> None:
    seen: list[tuple[int, float]] = []
    run(HandTurned(), [1, 2], on_step=lambda done, passed: seen.append((done, passed)))
    assert seen == [(1, 1), (2, 3)]


def test_the_clock_of_the_host_times_every_step() -> None:
    timing = time_steps(lambda n: sum(range(n)), [10, 10_000], clock=CpuClock())
    assert timing.n == 2
    assert (timing.step_s > 0).all()
    assert timing.wall_s >= timing.step_s.sum()
