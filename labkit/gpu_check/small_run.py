"""``python3 -m labkit.gpu_check.small_run cuda:0``: the trials that go every way through each kernel, once."""

from __future__ import annotations

import sys

import torch

from labkit.gpu.catalog import KERNELS
from labkit.gpu_check.items.kernels import run_trials
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.report import Report


def main(device: str) -> None:
    """Run them; the first that is wrong raises."""
    lab = Lab(torch.device(device), Report("unwritten.json", {}))
    for op in KERNELS:
        run_trials(lab, op, sample=True)


if __name__ == "__main__":
    main(sys.argv[1])
