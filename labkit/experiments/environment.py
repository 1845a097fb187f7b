"""The stamp at the end of a notebook: what it ran on, so that a figure can be traced."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version


def environment_stamp() -> str:
    """One line: versions of labkit, NumPy and Python, the machine, the time in UTC."""
    now = datetime.now(UTC)
    return (
        f"labkit {version('labkit')} · NumPy {version('numpy')} · Python {platform.python_version()} · "
        f"{platform.system()} {platform.machine()} · {now:%Y-%m-%d %H:%M} UTC"
    )
