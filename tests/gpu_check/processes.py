"""Whether a process has ended."""

from __future__ import annotations

import time
from pathlib import Path


def ended(number: int, patience_s: float = 10.0) -> bool:
    """Within the time; one that nobody has waited for yet has ended too."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
