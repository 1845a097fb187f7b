"""Programs that a case starts: none is left behind, neither when its time is over nor when the watchdog leaves."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

_RUNNING: set[subprocess.Popen[str]] = set()


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A program in a session of its own; with the block it ends, and so does all that it has started.

    Args:
        command: program and arguments; what it writes to either stream is captured.
        environment: variables beside those of this process.
    """
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    ) as process:
        _RUNNING.add(process)
        try:
            yield process
        finally:
            _end(process)
            _RUNNING.discard(process)


def end_all() -> None:
    """End every program that runs: of a watchdog, whose process leaves without unwinding."""
    for process in list(_RUNNING):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the whole session; compute-sanitizer would leave the program that it watches running on the GPU."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
