"""KernelRun: a job on kernel sources in a process of its own, with lowered priority, which can be cancelled.

A proof sets switches of torch that hold for the whole process and takes the cores for half a minute; here it does
neither to the panel. The child answers with a JSON line for each stage and one for the answer, and ends, with the
programs it runs, when its input does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import Any

import labkit.errors as known_errors
from labkit.errors import KernelLaunchError, LabkitError
from labkit.experiments.kernel_counts import counts_as_json, counts_from_json
from labkit.experiments.kernel_job import KernelAnswer, KernelJob, Told, proof_from_json, run_job

#: Added to the niceness of the child: the panel and whatever else a person does go first.
NICENESS = 10
#: Seconds from a polite end to a forced one.
_PATIENCE_S = 3.0


class KernelRun:
    """One job in a child process; ``run`` once, on any thread, ``cancel`` from another.

    Attributes:
        job: what is asked.
        cancelled: ``cancel`` was called.
    """

    def __init__(self, job: KernelJob) -> None:
        """Nothing is started."""
        self.job = job
        self.cancelled = False
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(self, told: Told = lambda *_: None) -> KernelAnswer | None:
        """Wait for the answer; None when it was cancelled.

        Raises:
            LabkitError: what ``run_job`` raises; KernelLaunchError: the child died.
        """
        with tempfile.TemporaryFile("w+") as complaints:
            child = self._started(complaints)
            if child is None:
                return None
            assert child.stdin is not None and child.stdout is not None  # noqa: PT018 - pipes, by the call
            try:
                with suppress(BrokenPipeError):  # it died at once: its end says why
                    child.stdin.write(json.dumps(self.job.as_json) + "\n")
                    child.stdin.flush()
                answer = self._read(child.stdout, told)
                code = child.wait()
            finally:
                self._end()
                child.stdout.close()
            complaints.seek(0)
            said = complaints.read().strip().splitlines()[-1:] or [""]
        if answer is None and not self.cancelled:
            raise KernelLaunchError(f"the process that checks {self.job.op} ended with code {code}: {said[0]}")
        return answer

    def cancel(self) -> None:
        """End the child and what it runs; ``run`` then gives None. Safe to call twice."""
        self.cancelled = True
        self._end()

    def _started(self, complaints: Any) -> subprocess.Popen[str] | None:
        with self._lock:
            if self.cancelled:
                return None
            self._child = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,  # compilers and programs of the child end with it, and Ctrl-C is ours alone
            )
            return self._child

    def _read(self, lines: Any, told: Told) -> KernelAnswer | None:
        for line in lines:
            if not line.endswith("\n"):  # half an answer of a killed child
                break
            said = json.loads(line)
            if "stage" in said:
                told(said["stage"], said["done"], said["of"])
            elif "error" in said:
                raise getattr(known_errors, said["kind"], LabkitError)(said["error"])
            else:
                proof, counts = said["proof"], said["counts"]
                return KernelAnswer(
                    self.job,
                    None if proof is None else proof_from_json(proof),
                    None if counts is None else counts_from_json(counts),
                )
        return None

    def _end(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            _signal(child.pid, signal.SIGTERM)
            try:
                child.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                _signal(child.pid, signal.SIGKILL)
                child.wait()
        if child.stdin is not None:
            with suppress(OSError):
                child.stdin.close()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


# -- the child's side -------------------------------------------------------------------------------------------


def main() -> int:
    """Read a job, run it, answer in lines."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    with suppress(OSError):  # some containers do not allow it; the run is the same
        os.nice(NICENESS)
    job = KernelJob.from_json(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def told(stage: str, done: int, of: int) -> None:
        answers.write(json.dumps({"stage": stage, "done": done, "of": of}) + "\n")

    try:
        answer = run_job(job, told)
    except LabkitError as error:
        answers.write(json.dumps({"error": str(error), "kind": type(error).__name__}) + "\n")
    else:
        found = {
            "proof": None if answer.proof is None else answer.proof.as_json,
            "counts": None if answer.counts is None else counts_as_json(answer.counts),
        }
        answers.write(json.dumps(found) + "\n")
    answers.close()
    return 0


def _end_with_parent() -> None:
    """The parent's end of the pipe is closed when it ends, however that comes about; compilers end with us."""
    while os.read(0, 4096):  # not sys.stdin, whose lock the interpreter wants at its own end
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
