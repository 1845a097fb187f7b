"""What a copy reaches on this device: the measure of all that only moves bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from labkit.gpu_check.lab import Lab
from labkit.gpu_check.report import Report
from labkit.gpu_check.runner import Case, Found

KEY = "bandwidth"


def cases(lab: Lab) -> Sequence[Case]:
    """One."""
    return [Case("copy", partial(_copy, lab))]


def _copy(lab: Lab) -> Found:
    """Device to device, half of the bytes read, half written."""
    size = lab.fit(lab.sizes.copy_bytes, 2.0)
    source = torch.ones(size, dtype=torch.int8, device=lab.device)
    target = torch.empty_like(source)
    timing = lab.timed(lambda: target.copy_(source))
    rate = 2 * size / timing["median_s"]
    return {"bytes": 2 * size, "bytes_per_s": rate, "shown": f"{rate / 1e9:.0f} GB/s", **timing}


def copy_bytes_per_s(report: Report) -> float | None:
    """What was measured; None where it was not."""
    found = [case.get("bytes_per_s") for case in report.cases(KEY)]
    return found[0] if found else None
