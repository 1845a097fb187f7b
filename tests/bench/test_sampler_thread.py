"""Sampler thread: every reader gets the samples, a border is a fresh sample, it ends when told and knows its price."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest

from labkit.bench.sampler_thread import SamplerThread
from labkit.provenance import Origin


@pytest.fixture
def sampler() -> Iterator[SamplerThread[int]]:
    numbers = count(1)
    sampler = SamplerThread(lambda: next(numbers), 0.5)
    yield sampler
    sampler.stop()


def test_the_first_sample_is_there_when_start_returns(sampler: SamplerThread[int]) -> None:
    reader = sampler.subscribe()
    sampler.start()
    assert reader.take() == [1]
    assert reader.take() == []


def test_a_border_is_a_sample_that_began_after_it_was_asked_for() -> None:
    inside, go_on = threading.Event(), threading.Event()
    numbers = count(1)

    def read() -> int:
        number = next(numbers)
        if number == 2:  # begun before the border, and still under way when it is asked for
            inside.set()
            go_on.wait(10)
        return number

    sampler = SamplerThread(read, 0.1)
    reader = sampler.subscribe()
    sampler.start()
    assert inside.wait(10)

    seen: list[int] = []

    def border() -> None:
        sampler.sample_now()
        seen.extend(reader.take())

    waiting = threading.Thread(target=border)
    waiting.start()
    while not sampler._wanted:
        time.sleep(0.001)
    go_on.set()
    waiting.join(10)
    sampler.stop()
    assert seen[:3] == [1, 2, 3]  # 3 began after the border, and the border waited for it


def test_many_readers_share_one_thread(sampler: SamplerThread[int]) -> None:
    everything, newest = sampler.subscribe(), sampler.subscribe(most=2)
    sampler.start()
    late = sampler.subscribe()
    for _ in range(3):
        sampler.sample_now()
    assert everything.take() == [1, 2, 3, 4]
    assert newest.take() == [3, 4]
    assert (everything.dropped, newest.dropped) == (0, 2)
    assert late.take() == [2, 3, 4]
    assert [t.name for t in threading.enumerate()].count("labkit-sampler") == 1


def test_who_unsubscribes_gets_no_more(sampler: SamplerThread[int]) -> None:
    reader = sampler.subscribe()
    sampler.start()
    sampler.unsubscribe(reader)
    sampler.sample_now()
    assert reader.take() == [1]


def test_it_samples_by_itself_stops_when_told_and_starts_again() -> None:
    numbers, many = count(1), threading.Event()

    def read() -> int:
        number = next(numbers)
        if number == 3:
            many.set()
        return number

    sampler = SamplerThread(read, 0.1)
    sampler.start()
    with pytest.raises(RuntimeError, match="runs already"):
        sampler.start()
    assert many.wait(10)
    sampler.stop()
    sampler.stop()
    assert not sampler.running
    sampler.sample_now()  # of a stopped sampler there is none, and nobody waits for it
    sampler.start()
    assert sampler.running
    sampler.stop()


def test_its_thread_ends_with_the_process() -> None:
    sampler = SamplerThread(lambda: 0)
    sampler.start()
    assert next(t for t in threading.enumerate() if t.name == "labkit-sampler").daemon
    sampler.stop()


def test_what_a_sample_raises_is_raised_where_it_can_be_seen() -> None:
    numbers = count(1)

    def read() -> int:
        number = next(numbers)
        if number == 2:
            raise OSError("gauge broke")
        return number

    sampler = SamplerThread(read)
    sampler.start()
    sampler.sample_now()  # does not hang
    with pytest.raises(RuntimeError, match="the sampler ended early: gauge broke"):
        sampler.stop()
    assert not sampler.running


def test_a_first_sample_that_raises_is_said_at_the_start() -> None:
    def read() -> int:
        raise OSError("no gauge")

    with pytest.raises(RuntimeError, match="no gauge"):
        SamplerThread(read).start()


def test_it_says_what_it_costs() -> None:
    sampler = SamplerThread(lambda: sum(range(1000)))
    assert sampler.overhead().reason == "the sampler has not run"
    sampler.start()
    sampler.sample_now()
    sampler.stop()
    cost = sampler.overhead()
    assert cost.origin is Origin.MEASURED
    assert cost.value is not None
    assert 0 < cost.value <= 1.5  # a thread cannot use more than one core, the clocks tick differently


@pytest.mark.parametrize("interval", [0.0, 0.09, 0.6])
def test_a_rate_outside_2_to_10_hertz_is_refused(interval: float) -> None:
    with pytest.raises(ValueError, match=f"got {interval:g}"):
        SamplerThread(lambda: 0, interval)
