"""``python3 -m labkit.gpu_check.small_run cuda:0``: the trials that go every way through each kernel, once.

Then every op and gradient with its results allocated on the device: memory that nobody wrote, which a trial's is not.
"""

from __future__ import annotations

import sys

import torch

from labkit.gpu.catalog import KERNELS
from labkit.gpu.verify.ragged import EVENTS, OFFSETS, REGIMES
from labkit.gpu_check.exact import GRADIENTS, Rows, inputs_of, result_and_gradients
from labkit.gpu_check.items.kernels import run_trials
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.report import Report

_DIM, _ITEMS = 12, 50


def main(device: str) -> None:
    """Run them; the first that is wrong raises."""
    lab = Lab(torch.device(device), Report("unwritten.json", {}))
    for op in KERNELS:
        run_trials(lab, op, sample=True)
    rows = Rows(OFFSETS.to(lab.device), EVENTS, REGIMES["mixed"])
    for name in GRADIENTS:
        result_and_gradients(name, rows, inputs_of(rows, _DIM, torch.float32, _ITEMS))
    lab.synchronize()


if __name__ == "__main__":
    main(sys.argv[1])
