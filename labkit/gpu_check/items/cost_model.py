"""What the cost model says of each strategy that was measured, over what was measured: 1 is right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.cost.devices import Gpu, gpu
from labkit.errors import GpuError
from labkit.experiments.what_if_model import ModelChoice, Modelled, modelled
from labkit.gpu_check.items.strategies import KEY as STRATEGIES
from labkit.gpu_check.items.strategies import MODEL, histogram_of, policies_of
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.runner import Case, Found

#: Modelled figure -> the measured one it is to be, and how one becomes the other.
_PAIRS = {"step_s": "median_s", "time_s": "epoch_s", "kernels": "kernels", "peak_bytes": "peak_bytes"}


def cases(lab: Lab) -> Sequence[Case]:
    """A strategy each."""
    chosen = policies_of(lab.sizes)
    return [Case(str(policy.strategy), partial(_ratio, lab, policy)) for policy in chosen]


def _ratio(lab: Lab, policy: BatchPolicy) -> Found:
    measured = next((c for c in lab.report.cases(STRATEGIES) if c["case"] == str(policy.strategy) and c["ok"]), None)
    if measured is None:
        return {"ok": None, "reason": f"{policy.strategy} was not measured"}
    device = _gpu(lab)
    histogram = histogram_of(lab.sizes)
    found = modelled(what_if(histogram, policy), histogram, ModelChoice(MODEL, device))
    ratios = {name: _over(found, name, measured.get(other)) for name, other in _PAIRS.items()}
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio is not None)
    return {
        "gpu": None if device is None else device.name,
        "modelled": {name: figure.value for name, figure in found.figures.items()},
        "measured": {name: measured.get(name) for name in _PAIRS.values()},
        "ratio": ratios,
        "reasons": {name: figure.reason for name, figure in found.figures.items() if figure.value is None},
        "bound": found.bound,
        "shown": f"modelled / measured: {shown}",
    }


def _gpu(lab: Lab) -> Gpu | None:
    """The data sheet of the device; None where the table has none, and then only what needs no GPU is compared."""
    if not lab.on_gpu:
        return None
    try:
        return gpu(torch.cuda.get_device_name(lab.device))
    except GpuError:
        return None


def _over(found: Modelled, name: str, measured: Any) -> float | None:
    value = found.figures[name].value
    return None if value is None or not measured else value / measured
