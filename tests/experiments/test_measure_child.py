"""A job in a child process: the same records, a crash that costs one of them, and nothing left behind."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.bench.record import Record
from labkit.errors import DeviceError, PolicyError
from labkit.experiments import measure_child
from labkit.experiments.execution import Execution
from labkit.experiments.measure_child import ChildRun
from labkit.experiments.measure_job import Job, Progress, run_job
from labkit.lengths.histogram import LengthHistogram

HISTOGRAM = LengthHistogram.from_lengths(np.array([1, 2, 3, 9, 4, 7] * 10))
JAGGED, PACKED = BatchPolicy("jagged", token_budget=64), BatchPolicy("packed", rows=4, capacity=9)


def job(*policies: BatchPolicy, seconds: float = 0.01, device: str = "cpu") -> Job:
    return Job(HISTOGRAM, policies, device=device, execution=Execution(seconds=seconds, warm_up=1))


def test_a_job_is_plain_json_there_and_back() -> None:
    made = job(JAGGED, PACKED)
    again = Job.from_dict(made.to_dict())
    assert again.to_dict() == made.to_dict()
    assert again.policies == made.policies
    assert again.without_first(1).policies == (PACKED,)  # type: ignore[union-attr]
    assert again.without_first(2) is None


def test_a_job_refuses_what_cannot_be_run() -> None:
    with pytest.raises(PolicyError, match="model 'dien' does not exist"):
        Job(HISTOGRAM, (JAGGED,), model="dien")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="no strategy to measure"):
        Job(HISTOGRAM, ())
    with pytest.raises(PolicyError, match="sequences must be 1 or more: got 0"):
        Job(HISTOGRAM, (JAGGED,), sequences=0)


def test_what_a_strategy_cannot_do_is_a_record_and_the_others_go_on() -> None:
    told: list[Progress | Record] = []
    run_job(job(BatchPolicy("rnn_packed", rows=4), JAGGED), told.append)
    refused, made = (event for event in told if isinstance(event, Record))
    assert "model din does not take the packed_sequence layout" in refused.reason["epoch_s"]
    assert made.ok
    assert next((p.index, p.of) for p in told if isinstance(p, Progress)) == (0, 2)


def test_a_child_tells_progress_and_records_in_order_and_is_nicer_than_its_parent() -> None:
    run = ChildRun(job(JAGGED, PACKED))
    told, niceness = [], set()
    for event in run:
        told.append(event)
        if isinstance(event, Progress) and run.pid:
            niceness.add(psutil.Process(run.pid).nice())
    assert [record.strategy for record in run.records] == ["jagged", "packed"]
    assert all(record.ok for record in run.records)
    assert [e.strategy for e in told if isinstance(e, Record)] == ["jagged", "packed"]
    assert max(niceness) == min(19, psutil.Process().nice() + 10)
    assert run.pid is None


@pytest.mark.parametrize(
    ("chosen", "cores", "threads"),
    [
        (None, 8.0, 7),  # one is left for the parent
        (None, 2.5, 1),  # a quota of the control group, though the machine has more
        (None, 0.5, 1),
        ("3", 8.0, 3),
        ("", 4.0, 3),
    ],
)
def test_the_child_takes_as_many_threads_as_it_may_or_as_somebody_chose(
    chosen: str | None, cores: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chosen is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    set_to = [3]  # what torch has taken from OMP_NUM_THREADS when it was loaded
    monkeypatch.setattr(measure_child, "available_cores", lambda: cores)
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    monkeypatch.setattr(os, "nice", lambda by: 0)
    measure_child._lower_priority()
    assert set_to[-1] == threads


def test_a_record_says_how_many_threads_somebody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    run = ChildRun(job(JAGGED))
    assert [record.environment["threads"] for record in run if isinstance(record, Record)] == ["2"]


def test_a_child_that_is_killed_costs_one_record() -> None:
    run, killed = ChildRun(job(JAGGED, PACKED)), []
    for event in run:
        if isinstance(event, Progress) and not killed:
            assert run.pid is not None
            killed.append(run.pid)
            os.kill(run.pid, signal.SIGKILL)
    first, second = run.records
    assert (first.strategy, first.ok, second.strategy, second.ok) == ("jagged", False, "packed", True)
    assert "died with signal SIGKILL, as the system does when memory is out" in first.reason["epoch_s"]
    assert not psutil.pid_exists(killed[0])


def test_cancel_ends_the_child_and_keeps_what_was_measured() -> None:
    run = ChildRun(job(JAGGED, BatchPolicy("pad_max", rows=1), seconds=60))
    quick = ChildRun(job(JAGGED))
    for event in run:
        if isinstance(event, Progress) and event.steps:
            pid = run.pid
            assert pid is not None
            workers = psutil.Process(pid).children(recursive=True)
            threading.Thread(target=run.cancel).start()
    assert run.cancelled
    assert len(run.records) <= 1  # an epoch of jagged may have been over
    assert not psutil.pid_exists(pid)
    assert not any(worker.is_running() for worker in workers)
    quick.cancel()
    assert list(quick) == []  # cancelled before it began


def test_a_device_that_is_not_there_ends_the_run_with_its_own_error() -> None:
    with pytest.raises(DeviceError, match="device 'tpu' does not exist: use cpu"):
        list(ChildRun(job(JAGGED, device="tpu")))


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    # a parent that is killed cannot tidy up: its child sees the end of its input
    import subprocess
    import sys

    code = (
        "import sys, labkit.experiments.measure_child as m\n"
        "from tests.experiments.test_measure_child import job\n"
        "from labkit.batching.policy import BatchPolicy\n"
        "run = m.ChildRun(job(BatchPolicy('pad_max', rows=1), seconds=60))\n"
        "for event in run: print(run.pid, flush=True)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    child.wait(timeout=60)
    assert not child.is_running()
