"""Commands of the container tools, run loudly: a failure ends the check with what they said."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence


class CheckError(Exception):
    """The check cannot go on, or found something wrong; one line."""


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 1800,
    may_fail: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its output is kept, and shown where it fails."""
    try:
        done = subprocess.run(
            list(command), env=environment, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except FileNotFoundError:
        raise CheckError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CheckError(f"`{' '.join(command[:4])} …` took more than {timeout_s:.0f} s") from None
    if done.returncode and not may_fail:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise CheckError(f"`{' '.join(command)}` failed (exit {done.returncode}):\n{tail}")
    return done
