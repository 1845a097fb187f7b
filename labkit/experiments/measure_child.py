"""ChildRun: a job run in a process of its own, with lowered priority; a crash costs one record and not the others.

The parent writes the job as JSON to the child's input and keeps it open; the child answers with a JSON line for each
progress and record, and ends when its input does, so that nothing is left behind when the parent dies.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import IO, Any

import labkit.errors as known_errors
from labkit.bench.observers.utilization_cpu import available_cores
from labkit.bench.record import Record
from labkit.errors import LabkitError
from labkit.experiments.measure_job import Job, Progress, run_job

#: Added to the niceness of the child: the panel and whatever else a person does go first.
NICENESS = 10
#: Seconds from a polite end to a forced one.
_PATIENCE_S = 3.0


class ChildRun:
    """A job in a child process. Iterate over it once, on any thread; ``cancel`` may come from another.

        run = ChildRun(job)
        for event in run: ...        # Progress and Record
        run.records                  # what there is, also after cancel

    One core is left free for the parent: torch gets one thread less than the cores that the process may use (affinity,
    quota of its control group), and at least one. ``OMP_NUM_THREADS`` is somebody's own choice and kept.

    Attributes:
        job: what is measured.
        records: so far, in the order of the job.
        cancelled: ``cancel`` was called.
    """

    def __init__(self, job: Job) -> None:
        """Nothing runs before the iteration begins."""
        self.job = job
        self.records: list[Record] = []
        self.cancelled = False
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Of the child that is running; None where none is."""
        child = self._child
        return None if child is None or child.poll() is not None else child.pid

    def __iter__(self) -> Iterator[Progress | Record]:
        """Run the job; a child that dies is followed by another for the strategies that are left.

        Raises:
            LabkitError: what the child refuses before the first strategy, such as a device that is not there.
        """
        while not self.cancelled and (left := self.job.without_first(len(self.records))) is not None:
            yield from self._one_child(left)

    def cancel(self) -> None:
        """End the child, and with it the iteration. What was measured before is kept."""
        self.cancelled = True
        self._end()

    # -- one child ----------------------------------------------------------------------------------------------

    def _one_child(self, job: Job) -> Iterator[Progress | Record]:
        before = len(self.records)
        with tempfile.TemporaryFile("w+") as complaints:
            child = self._start(complaints)
            if child is None:
                return
            try:
                with suppress(BrokenPipeError):  # it died at once: its answer, or its end, says why
                    _pipe(child.stdin).write(json.dumps(job.to_dict()) + "\n")
                    _pipe(child.stdin).flush()
                for line in _pipe(child.stdout):
                    if line.endswith("\n"):  # a child that is killed may leave half an answer
                        yield self._event(json.loads(line), before)
                code = child.wait()
            finally:
                self._end()
                _pipe(child.stdout).close()
            complaints.seek(0)
            why = complaints.read().strip().splitlines()[-1:] or [""]
        if not self.cancelled and len(self.records) - before < len(job.policies):
            yield self._kept(_crashed(job, len(self.records) - before, code, why[0]))

    def _start(self, complaints: IO[str]) -> subprocess.Popen[str] | None:
        with self._lock:
            if self.cancelled:
                return None
            self._child = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,  # Ctrl-C reaches the parent alone, and its workers end with it
            )
            return self._child

    def _event(self, answer: dict[str, Any], before: int) -> Progress | Record:
        if "error" in answer:
            raise getattr(known_errors, answer["kind"], LabkitError)(answer["error"])
        if "progress" in answer:
            moved = {"index": answer["progress"]["index"] + before, "of": len(self.job.policies)}
            return Progress(**{**answer["progress"], **moved})
        who = {name: answer[name] for name in ("device", "model", "environment")}
        return self._kept(Record.from_dict(answer["record"], **who))

    def _kept(self, record: Record) -> Record:
        self.records.append(record)
        return record

    def _end(self) -> None:
        """Terminate, then kill, and wait until it is gone; its workers with it."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            _signal(child, signal.SIGTERM)
            try:
                child.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.wait()
        with suppress(OSError):
            _pipe(child.stdin).close()


def _pipe(end: IO[str] | None) -> IO[str]:
    if end is None:
        raise AssertionError("the child was started without a pipe")
    return end


def _signal(child: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _crashed(job: Job, index: int, code: int, complaint: str) -> Record:
    """The record of the strategy during which the child died."""
    policy = job.policies[index]
    why = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
    if code == -signal.SIGKILL:
        why += ", as the system does when memory is out: lower rows, token_budget or max_length"
    detail = f" ({complaint})" if complaint else ""
    return Record.failed(
        f"the measuring process died with {why}{detail}",
        strategy=str(policy.strategy),
        policy=policy.to_dict(),
        device=job.device,
        model=str(job.model),
        environment={},
    )


# -- the child's side -------------------------------------------------------------------------------------------


def main() -> int:
    """Read a job, run it, answer in lines."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    _lower_priority()
    job = Job.from_dict(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(event: Progress | Record) -> None:
        if isinstance(event, Progress):
            answer: dict[str, Any] = {"progress": asdict(event)}
        else:
            answer = {"record": event.to_dict(), "device": event.device, "model": event.model}
            answer["environment"] = dict(event.environment)
        print(json.dumps(answer, allow_nan=False), file=answers)

    try:
        run_job(job, tell)
    except LabkitError as error:
        print(json.dumps({"error": str(error), "kind": type(error).__name__}), file=answers)
    answers.close()
    return 0


def _lower_priority() -> None:
    """A lower priority and one core for the parent."""
    import torch

    with suppress(OSError):  # some containers do not allow it; the run is the same
        os.nice(NICENESS)
    if not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(max(1, int(available_cores()) - 1))


def _end_with_parent() -> None:
    """The parent's end of the pipe is closed when it ends, however that comes about."""
    while os.read(0, 4096):  # not sys.stdin, whose lock the interpreter wants at its own end
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
