"""One worker behind a panel: callbacks only enqueue, the newest request wins, pictures follow when the hand rests."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)
_Request = TypeVar("_Request")


@dataclass(frozen=True, slots=True)
class _Asked(Generic[_Request]):
    """A request in the queue."""

    request: _Request


class NewestWins(Generic[_Request]):
    """Runs requests on one thread; a request that was not started when a newer one comes is skipped.

    The thread starts with the first request and ends by itself when there has been nothing to do for a second, so that
    a panel that was thrown away leaves nothing behind.

    Args:
        work: answers a request; quick, on the path of a moving slider.
        settle: what is too heavy for the path of a moving slider (pictures): once no request has come for
            ``quiet_s``, or at once where somebody waits.
        fail: gets what ``work``, ``settle`` or an action raised.
        quiet_s: seconds without a request before ``settle`` is called.
    """

    _LINGER_S = 1.0

    def __init__(
        self,
        work: Callable[[_Request], None],
        settle: Callable[[], None],
        fail: Callable[[Exception], None],
        *,
        quiet_s: float = 0.25,
    ) -> None:
        """Remember what to call; nothing is started."""
        self._work, self._settle, self._fail, self._quiet_s = work, settle, fail, quiet_s
        self._wake = threading.Condition()
        self._queue: deque[_Asked[_Request] | Callable[[], None]] = deque()  # never two requests side by side
        self._unsettled = False
        self._asked_at = 0.0
        self._waiting = 0
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, request: _Request) -> None:
        """Ask for an answer; replaces a request that still waits, unless an action waits behind it."""
        with self._wake:
            if self._closed:
                return
            if self._queue and isinstance(self._queue[-1], _Asked):
                self._queue.pop()
            self._queue.append(_Asked(request))
            self._asked_at = time.monotonic()
            self._start()

    def call(self, action: Callable[[], None]) -> None:
        """Run an action on the worker, after what was asked before it: it finds the answer there.

        Actions are never skipped and keep their order.
        """
        with self._wake:
            if self._closed:
                return
            self._queue.append(action)
            self._start()

    def wait(self, timeout: float = 30.0) -> bool:
        """Block until everything asked for is done; False when the time is up."""
        with self._wake:
            self._waiting += 1
            self._wake.notify_all()
            try:
                return self._wake.wait_for(self._idle, timeout)
            finally:
                self._waiting -= 1

    def close(self) -> None:
        """Finish what runs, forget what waits, take nothing more. Safe to call twice."""
        with self._wake:
            self._closed = True
            self._queue.clear()
            self._unsettled = False
            self._wake.notify_all()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5.0)

    def _idle(self) -> bool:
        return not (self._busy or self._queue or self._unsettled)

    def _start(self) -> None:
        if self._closed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="labkit-panel", daemon=True)
            self._thread.start()
        self._wake.notify_all()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except Exception as error:
                self._complain(error)
            with self._wake:
                self._busy = False
                self._wake.notify_all()

    def _complain(self, error: Exception) -> None:
        try:
            self._fail(error)
        except Exception:  # the worker goes on, or everything asked for later would wait for ever
            _log.exception("an error of the panel could not be shown: %s", error)

    def _next(self) -> Callable[[], None] | None:
        """The next thing to do, or None when the thread should end."""
        with self._wake:
            while not (self._closed or self._queue):
                if not self._unsettled:
                    if not self._wake.wait_for(lambda: self._closed or not self._idle(), self._LINGER_S):
                        break
                    continue
                rest = self._asked_at + self._quiet_s - time.monotonic()
                if rest <= 0 or self._waiting:
                    self._unsettled, self._busy = False, True
                    return self._settle
                self._wake.wait(rest)
            if self._closed or self._idle():
                self._thread = None
                return None
            self._busy = True
            job = self._queue.popleft()
            if not isinstance(job, _Asked):
                return job
            self._unsettled = True
            return lambda: self._work(job.request)
