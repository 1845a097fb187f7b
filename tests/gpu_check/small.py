"""A lab on the CPU, small enough for a test."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from labkit.gpu_check.lab import Lab, Sizes
from labkit.gpu_check.report import Report
from tests.bench.tape import TapeBackend

SMALL = Sizes(
    rows=60, longest=40, dim=8, items=50, many_rows=70, million=3000, long_row=3000, most_elements=4096, sequences=80,
    token_budget=200, batch_rows=8, strategy_s=math.inf, sweep_s=math.inf, repeat_s=0.0, most_repeats=3,
    copy_bytes=4096, dims=(1, 12),
)  # fmt: skip


def small_lab(folder: Path) -> Lab:
    """Its graphs are recorded on a tape."""
    report = Report(folder / "run.json", {"gpu": "none"})
    return Lab(torch.device("cpu"), report, SMALL, graphs=lambda _: TapeBackend())
