"""Runs a kernel's program: what it prints is kept up to a limit, and a program that floods or hangs is ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import IO

#: What a program may print, on each of its two streams; a kernel that prints from every thread would fill the memory.
MOST_PRINTED_BYTES = 1 << 20

#: How long a program that was asked to end may take to say where it is.
_LAST_WORDS_S = 2.0

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that is over.

    Attributes:
        returncode: negative: the signal that ended it.
        stdout: the first ``MOST_PRINTED_BYTES`` of what it printed.
        stderr: the same of its messages.
        timed_out: it was ended because its time was up.
        flooded: it was ended because it printed more than that.
    """

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False
    flooded: bool = False


def run_program(
    command: Sequence[str], given: str, *, timeout_s: float, files: Sequence[int], environment: Mapping[str, str]
) -> Finished:
    """Run a program to its end, or end it.

    Args:
        command: the program and its arguments.
        given: its standard input.
        timeout_s: after that it is asked to end (SIGTERM), and then made to.
        files: descriptors that it inherits.
        environment: its environment.
    """
    job = os.memfd_create("labkit-kernel-job")
    try:
        os.pwrite(job, given.encode(), 0)
        process = subprocess.Popen(
            command,
            stdin=job,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=tuple(files),
            env=dict(environment),
        )
    finally:
        os.close(job)
    streams = [_Stream(stream, process) for stream in (process.stdout, process.stderr) if stream is not None]
    timed_out = False
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LAST_WORDS_S)
    finally:
        process.kill()
        process.wait()
    printed, messages = (stream.text() for stream in streams)
    flooded = any(stream.flooded for stream in streams)
    return Finished(process.returncode, printed, messages, timed_out and not flooded, flooded)


class _Stream:
    """Reads one stream of a process in a thread of its own; past the limit the process is killed."""

    def __init__(self, stream: IO[bytes], process: subprocess.Popen[bytes]) -> None:
        self._stream, self._process, self._kept = stream, process, bytearray()
        self.flooded = False
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was kept, once the stream has ended."""
        self._thread.join()
        return self._kept.decode(errors="replace")

    def _read(self) -> None:
        with self._stream as stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._kept += chunk[: MOST_PRINTED_BYTES - len(self._kept)]
                if len(self._kept) >= MOST_PRINTED_BYTES:
                    self.flooded = True
                    self._process.kill()
                    return
