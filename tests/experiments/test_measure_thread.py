from __future__ import annotations

import threading

import psutil
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.bench.record import Record
from labkit.errors import DeviceError, LabkitError
from labkit.experiments.execution import Execution
from labkit.experiments.measure_job import Job, Progress
from labkit.experiments.measure_thread import MeasureThread
from labkit.lengths.histogram import LengthHistogram

LENGTHS = LengthHistogram.from_lengths([1, 2, 3, 5, 8])


class Listener:
    """What a measurement told."""

    def __init__(self) -> None:
        self.events: list[Progress | Record] = []
        self.ends: list[tuple[Exception | None, bool]] = []
        self.begun = threading.Event()

    def tell(self, event: Progress | Record) -> None:
        self.events.append(event)
        self.begun.set()

    def ended(self, error: Exception | None, cancelled: bool) -> None:
        self.ends.append((error, cancelled))


def job(seconds: float = 0.05, device: str = "cpu") -> Job:
    policies = (BatchPolicy("pad_batch", rows=2), BatchPolicy("pad_max", rows=2))
    return Job(LENGTHS, policies, "pooled", device, Execution(seconds=seconds, warm_up=1))


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_records_come_in_order_and_then_the_end(listener: Listener) -> None:
    thread = MeasureThread(listener.tell, listener.ended)
    thread.start(job())
    assert thread.wait()
    assert [e.strategy for e in listener.events if isinstance(e, Record)] == ["pad_batch", "pad_max"]
    assert listener.ends == [(None, False)]
    assert thread.pid is None


def test_cancel_leaves_no_process_and_a_new_job_can_start(listener: Listener) -> None:
    thread = MeasureThread(listener.tell, listener.ended)
    thread.start(job(seconds=60))
    assert listener.begun.wait(60)
    child = thread.pid
    assert child is not None
    with pytest.raises(LabkitError, match="a measurement is running"):
        thread.start(job())
    thread.cancel()
    assert thread.wait()
    assert listener.ends == [(None, True)]
    assert not psutil.pid_exists(child)


def test_close_ends_the_child_and_nothing_is_told_any_more(listener: Listener) -> None:
    thread = MeasureThread(listener.tell, listener.ended)
    thread.start(job(seconds=60))
    assert listener.begun.wait(60)
    child = thread.pid
    thread.close()
    thread.close()
    assert child is not None
    assert not psutil.pid_exists(child)
    assert listener.ends == []
    thread.start(job())
    assert not thread.running


def test_what_the_child_refuses_is_handed_over(listener: Listener) -> None:
    thread = MeasureThread(listener.tell, listener.ended)
    thread.start(job(device="cuda:7"))
    assert thread.wait()
    ((error, cancelled),) = listener.ends
    assert isinstance(error, DeviceError)
    assert not cancelled
