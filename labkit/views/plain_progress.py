"""PlainProgress: a measurement as it goes, as text: one line a strategy, rewritten in place while it runs."""

from __future__ import annotations

import sys
from typing import TextIO

from labkit.bench.record import Record
from labkit.experiments.measure_job import Progress
from labkit.units import counted, format_count, format_seconds

_WIDTH = 78


class PlainProgress:
    """Writes what it is told; in a notebook, a terminal or a log.

    Args:
        out: where; None: the standard output of the moment.
        every_s: least measured time between two rewritings of a line.
    """

    def __init__(self, out: TextIO | None = None, every_s: float = 0.5) -> None:
        """Nothing is written yet."""
        self._out, self._every_s, self._last, self._at = out, every_s, 0.0, ""

    def __call__(self, event: Progress | Record) -> None:
        """Show an event: progress in place, a record on a line of its own."""
        out = self._out or sys.stdout
        if isinstance(event, Record):
            print(f"\r{self._at}{_ended(event)}".ljust(_WIDTH), file=out, flush=True)
            self._last = 0.0
            return
        self._at = f"{event.index + 1}/{event.of} {event.strategy}: "
        if event.steps and event.seconds - self._last < self._every_s:
            return
        self._last = event.seconds
        done = f"{counted(event.steps, 'step')}, {event.seconds:.1f} s" if event.steps else "warming up"
        print(f"\r{self._at}{done}".ljust(_WIDTH), end="", file=out, flush=True)


def _ended(record: Record) -> str:
    if record.epoch_s is None or record.events_per_s is None:
        return f"not measured: {record.reason['epoch_s']}"
    return f"{format_count(record.events_per_s)} events/s, an epoch in {format_seconds(record.epoch_s)}"
