"""MeasureThread: a job in a child process, followed by one thread, so that a screen stays alive; one job at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from labkit.bench.record import Record
from labkit.errors import LabkitError
from labkit.experiments.measure_child import ChildRun
from labkit.experiments.measure_job import Job, Progress

#: Called with each progress and record, on the measuring thread.
OnEvent = Callable[[Progress | Record], object]
#: Called at the end, on the measuring thread: what the job raised or None, and whether it was cancelled.
OnEnd = Callable[[Exception | None, bool], object]


class MeasureThread:
    """Starts, follows and cancels jobs.

    Args:
        tell: gets what comes.
        ended: called once a job, after the child is gone.
    """

    def __init__(self, tell: OnEvent, ended: OnEnd) -> None:
        """Nothing runs."""
        self._tell, self._ended = tell, ended
        self._lock = threading.Lock()
        self._run: ChildRun | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        """A job is being measured."""
        with self._lock:
            return self._run is not None

    @property
    def pid(self) -> int | None:
        """Of the child process; None where none is."""
        with self._lock:
            return None if self._run is None else self._run.pid

    def start(self, job: Job) -> None:
        """Measure a job.

        Raises:
            LabkitError: one is being measured already.
        """
        with self._lock:
            if self._closed:
                return
            if self._run is not None:
                raise LabkitError("a measurement is running: cancel it, or wait for its end.")
            self._run = ChildRun(job)
            self._thread = threading.Thread(target=self._follow, args=(self._run,), name="labkit-measure", daemon=True)
            self._thread.start()

    def cancel(self) -> None:
        """Have the child ended; what was measured before is kept. Does not wait: ``ended`` follows."""
        with self._lock:
            run = self._run
        if run is not None:
            threading.Thread(target=run.cancel, name="labkit-cancel", daemon=True).start()

    def close(self) -> None:
        """End the child and wait until it is gone; nothing is told any more, nothing more is started."""
        with self._lock:
            self._closed = True
            run, thread = self._run, self._thread
        if run is not None:
            run.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def wait(self, timeout: float = 60.0) -> bool:
        """Block until no job runs; False when the time is up."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return not self.running

    def _follow(self, run: ChildRun) -> None:
        error: Exception | None = None
        try:
            for event in run:
                if not self._closed:
                    self._tell(event)
        except Exception as raised:  # shown by whoever started it
            error = raised
            run.cancel()
        with self._lock:
            self._run = None
        if not self._closed:
            self._ended(None if run.cancelled and error is None else error, run.cancelled and error is None)
