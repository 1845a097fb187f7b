"""What the gauges say while the device does one known thing: SM-active is not time-active, and here it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch

from labkit.bench.observers.utilization import utilization
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.runner import Case, Found

_BUSY_S = 1.5


def cases(lab: Lab) -> Sequence[Case]:
    """Bytes, arithmetic, and one small kernel at a time."""
    return [
        Case("a large copy, again and again", partial(_watched, lab, _copies)),
        Case("large products, again and again", partial(_watched, lab, _products)),
        Case("one block at a time", partial(_watched, lab, _small)),
    ]


def _watched(lab: Lab, make: Callable[[Lab], Callable[[], object]]) -> Found:
    if not lab.on_gpu:
        return {"ok": None, "reason": "NVML reads a GPU, and there is no CUDA device here"}
    call, seconds = make(lab), _BUSY_S
    call()
    with utilization(lab.device.index or 0, 0.1) as gauges:
        gauges.before_run()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for _ in range(10):
                call()
            torch.cuda.synchronize(lab.device)
        gauges.after_run()
        figures = gauges.figures()
    values = {name: figure.value for name, figure in figures.items()}
    reasons = {name: figure.reason for name, figure in figures.items() if figure.reason}
    if all(value is None for value in values.values()):
        return {"ok": None, "reason": next(iter(reasons.values()), "no gauge"), "figures": values}
    shown = ", ".join(f"{name} {value:.3g}" for name, value in values.items() if value is not None)
    return {"figures": values, "reasons": reasons, "shown": shown}


def _copies(lab: Lab) -> Callable[[], object]:
    source = torch.ones(lab.fit(lab.sizes.copy_bytes, 2.0), dtype=torch.int8, device=lab.device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _products(lab: Lab) -> Callable[[], object]:
    left = torch.randn(4096, 4096, device=lab.device)
    return lambda: left @ left


def _small(lab: Lab) -> Callable[[], object]:
    few = torch.ones(64, device=lab.device)
    return lambda: few.add_(1)
