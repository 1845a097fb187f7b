"""LoaderWait: how much of a run is spent waiting for data."""

from __future__ import annotations

import time
from collections.abc import Callable

from labkit.bench.observers.base import Observer
from labkit.provenance import Figure, Origin


class LoaderWait(Observer):
    """The share of wall time in which the loop waits for its next batch.

    Without loader workers this is the whole fetching and collating; with workers what they did not hide. On a GPU,
    earlier steps may still be running during the wait.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        """Nothing waited yet."""
        self._now = now
        self._asked = self._began = self._waited = self._wall = 0.0

    def before_run(self) -> None:
        """Start anew."""
        self._waited, self._began = 0.0, self._now()

    def before_wait(self) -> None:
        """The wait begins."""
        self._asked = self._now()

    def before_step(self) -> None:
        """The batch is there."""
        self._waited += self._now() - self._asked

    def after_run(self) -> None:
        """The run is over."""
        self._wall = self._now() - self._began

    def figures(self) -> dict[str, Figure]:
        """``loader_wait_share``."""
        if not self._wall:
            return {"loader_wait_share": Figure(None, "1", None, "nothing was run")}
        why = "share of wall time in which the loop waits for its next batch"
        return {"loader_wait_share": Figure(self._waited / self._wall, "1", Origin.MEASURED, why)}
