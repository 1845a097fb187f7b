"""BackgroundTraces: models are traced on a thread of their own, so that what waits for the figures stays alive."""

from __future__ import annotations

import threading
from collections.abc import Callable

from labkit.experiments.model_cost import Mode, step_cost
from labkit.experiments.what_if_model import ModelChoice
from labkit.models.registry import Model, model_spec

_Key = tuple[Model, Mode]


class BackgroundTraces:
    """Which models are traced, and how to have one traced. A model is traced once a process, in all its layouts.

    Args:
        done: called (without arguments) on the tracing thread, after each trace.
    """

    def __init__(self, done: Callable[[], object]) -> None:
        """Nothing is traced before it is asked for."""
        self._done = done
        self._lock = threading.Lock()
        self._ready: set[_Key] = set()
        self._failed: dict[_Key, Exception] = {}
        self._running: dict[_Key, threading.Thread] = {}

    def ready(self, choice: ModelChoice) -> bool:
        """Whether the figures of a choice can be had at once. Where not, its trace is begun, unless it has failed."""
        key = choice.model, choice.mode
        with self._lock:
            if key in self._ready:
                return True
            if key not in self._running and key not in self._failed:
                thread = threading.Thread(target=self._trace, args=key, name=f"trace of {choice.model}", daemon=True)
                self._running[key] = thread
                thread.start()
            return False

    def failure(self, choice: ModelChoice) -> Exception | None:
        """What the trace of a choice raised."""
        with self._lock:
            return self._failed.get((choice.model, choice.mode))

    def wait(self, timeout: float = 60.0) -> None:
        """Until nothing is being traced, or the time is up."""
        with self._lock:
            threads = list(self._running.values())
        for thread in threads:
            thread.join(timeout)

    def _trace(self, model: Model, mode: Mode) -> None:
        error: Exception | None = None
        try:
            for layout in model_spec(model).takes:
                step_cost(model, layout, mode)
        except Exception as raised:  # shown by whoever asked
            error = raised
        with self._lock:
            del self._running[model, mode]
            if error is None:
                self._ready.add((model, mode))
            else:
                self._failed[model, mode] = error
        self._done()
