"""One worker behind a panel: callbacks only enqueue, the newest request wins, pictures follow when there is time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

_Request = TypeVar("_Request")


class NewestWins(Generic[_Request]):
    """Runs requests on one thread; a request that was not started when a newer one comes is skipped.

    The thread starts with the first request and ends by itself when there has been nothing to do for a second, so that
    a panel that was thrown away leaves nothing behind.

    Args:
        work: answers a request; quick, on the path of a moving slider.
        settle: what may lag behind (pictures): after the last request, and at most every ``settle_s`` during a flood.
        fail: gets what ``work``, ``settle`` or an action raised.
        settle_s: seconds between two calls of ``settle`` while requests keep coming.
    """

    _LINGER_S = 1.0

    def __init__(
        self,
        work: Callable[[_Request], None],
        settle: Callable[[], None],
        fail: Callable[[Exception], None],
        *,
        settle_s: float = 0.2,
    ) -> None:
        """Remember what to call; nothing is started."""
        self._work, self._settle, self._fail, self._settle_s = work, settle, fail, settle_s
        self._wake = threading.Condition()
        self._actions: deque[Callable[[], None]] = deque()
        self._request: list[_Request] = []  # at most one
        self._unsettled = False
        self._settled_at = 0.0
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, request: _Request) -> None:
        """Ask for an answer; replaces a request that still waits."""
        with self._wake:
            self._request[:] = [request]
            self._start()

    def call(self, action: Callable[[], None]) -> None:
        """Run an action on the worker; actions are never skipped and keep their order."""
        with self._wake:
            self._actions.append(action)
            self._start()

    def wait(self, timeout: float = 30.0) -> bool:
        """Block until everything asked for is done; False when the time is up."""
        with self._wake:
            return self._wake.wait_for(self._idle, timeout)

    def close(self) -> None:
        """Finish what runs, forget what waits, take nothing more. Safe to call twice."""
        with self._wake:
            self._closed = True
            self._actions.clear()
            self._request.clear()
            self._unsettled = False
            self._wake.notify_all()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5.0)

    def _idle(self) -> bool:
        return not (self._busy or self._actions or self._request or self._unsettled)

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
                self._fail(error)
            with self._wake:
                self._busy = False
                self._wake.notify_all()

    def _next(self) -> Callable[[], None] | None:
        """The next thing to do, or None when the thread should end."""
        with self._wake:
            if not self._wake.wait_for(lambda: self._closed or not self._idle(), self._LINGER_S) or self._closed:
                self._thread = None
                return None
            self._busy = True
            if self._actions:
                return self._actions.popleft()
            now = time.monotonic()
            if self._request and not (self._unsettled and now - self._settled_at >= self._settle_s):
                request = self._request.pop()
                self._unsettled = True
                return lambda: self._work(request)
            self._unsettled, self._settled_at = False, now
            return self._settle
