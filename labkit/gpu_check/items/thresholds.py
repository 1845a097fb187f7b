"""Which thresholds of the regimes are the fastest here, and what the defaults and the model of them lose by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.segment_pool import segment_sum
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.ragged_data import Law, RaggedData
from labkit.gpu_check.runner import Case, Found

_SHORT, _MEDIUM, _LONG = (8, 16, 32, 64, 128), (64, 128, 256, 512), (1024, 2048, 4096)

_Run = Callable[[RaggedData, LaunchConfig, Any], object]


def _sum(data: RaggedData, config: LaunchConfig, bins: Any) -> object:
    return segment_sum(data.values, data.offsets, bins, config.thresholds, False)


def _attention(data: RaggedData, config: LaunchConfig, bins: Any) -> object:
    return attention_pool(data.scores, data.values, data.offsets, bins, config.thresholds)


_OPS: dict[str, _Run] = {"segment_sum": _sum, "attention_pool": _attention}


def cases(lab: Lab) -> Sequence[Case]:
    """Two ops on either law of lengths."""
    return [Case(f"{op}, {law}", partial(_sweep, lab, law, run)) for law in Law for op, run in _OPS.items()]


def _sweep(lab: Lab, law: Law, run: _Run) -> Found:
    event = lab.sizes.dim * 4
    rows = lab.fit(lab.sizes.rows, 1.5 * event * (lab.sizes.longest if law is Law.UNIFORM else 300))
    data = RaggedData(lab, law, rows)
    grid = [maxima for maxima in product(_SHORT, _MEDIUM, _LONG) if maxima[0] <= maxima[1]]
    tried = [{"thresholds": list(maxima), **_timed(lab, data, LaunchConfig(*maxima), run)} for maxima in grid]
    best = min(tried, key=lambda entry: float(entry["median_s"]))
    chosen, default = data.config, LaunchConfig()
    own = {"thresholds": list(chosen.thresholds), **_timed(lab, data, chosen, run)}
    usual = {"thresholds": list(default.thresholds), **_timed(lab, data, default, run)}
    return {
        "rows": rows,
        "events": data.events,
        "best": best,
        "chosen": own,
        "default": usual,
        "tried": tried,
        "shown": f"best {best['thresholds']} {best['median_s'] * 1e3:.3f} ms, chosen {own['thresholds']} "
        f"{own['median_s'] / best['median_s']:.2f} x, default {usual['median_s'] / best['median_s']:.2f} x",
    }


def _timed(lab: Lab, data: RaggedData, config: LaunchConfig, run: _Run) -> dict[str, Any]:
    bins = bin_rows(data.offsets, config.giants(data.events), config.thresholds)
    return lab.timed(lambda: run(data, config, bins))
