"""Which thresholds of the regimes are the fastest here, and what the defaults and the model of them lose by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.segment_pool import segment_sum
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.ragged_data import Law, RaggedData
from labkit.gpu_check.runner import Case, Found

#: Powers of two that are tried for each threshold; a warp for a row of 4096 events is one of them.
_AXES = ((8, 16, 32, 64, 128, 256), (64, 128, 256, 512, 1024, 2048, 4096), (1024, 2048, 4096))

Thresholds = tuple[int, int, int]
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
    end = time.monotonic() + lab.sizes.sweep_s
    found, is_whole = search(
        data.config.thresholds,
        lambda maxima: _timed(lab, data, LaunchConfig(*maxima), run),
        lambda: time.monotonic() >= end,
    )
    tried = [{"thresholds": list(maxima), **timing} for maxima, timing in found.items()]
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
        "is_whole": is_whole,
        "shown": f"best {best['thresholds']} {best['median_s'] * 1e3:.3f} ms, chosen {own['thresholds']} "
        f"{own['median_s'] / best['median_s']:.2f} x, default {usual['median_s'] / best['median_s']:.2f} x; "
        f"{len(tried)} tried" + ("" if is_whole else ", then the time was over"),
    }


def search(
    start: Thresholds, timed: Callable[[Thresholds], dict[str, Any]], is_over: Callable[[], bool]
) -> tuple[dict[Thresholds, dict[str, Any]], bool]:
    """One threshold after the other by all its values, the others at their best so far, until a round changes none.

    Args:
        start: thresholds to begin with, which are always timed.
        timed: gives ``median_s`` of some.
        is_over: there is no time for another.

    Returns:
        What was timed, in order; whether the search came to its end.
    """
    found = {start: timed(start)}
    best, changed = start, True
    while changed:
        before = best
        for axis in (1, 0, 2):  # the medium one decides most: a warp, or a block
            for value in _AXES[axis]:
                near = tuple(value if i == axis else kept for i, kept in enumerate(best))
                maxima = (near[0], near[1], near[2])
                if maxima in found or list(maxima) != sorted(maxima):
                    continue
                if is_over():
                    return found, False
                found[maxima] = timed(maxima)
            best = min(found, key=lambda maxima: float(found[maxima]["median_s"]))
        changed = best != before
    return found, True


def _timed(lab: Lab, data: RaggedData, config: LaunchConfig, run: _Run) -> dict[str, Any]:
    bins = bin_rows(data.offsets, config.giants(data.events), config.thresholds)
    return lab.timed(lambda: run(data, config, bins))
