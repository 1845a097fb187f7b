"""The items of a run, in the order of their worth, with their shares of the time."""

from __future__ import annotations

from labkit.gpu_check.items import (
    bandwidth,
    compiling,
    cost_model,
    gauges,
    graph_replay,
    kernels,
    op_timings,
    sanitizer,
    strategies,
    thresholds,
)
from labkit.gpu_check.runner import Item

ITEMS: tuple[Item, ...] = (
    Item("compile", "every source compiled", 0.10, compiling.cases),
    Item("kernels", "kernels against the reference and torch in float64", 0.22, kernels.cases),
    Item(bandwidth.KEY, "bandwidth of a copy", 0.01, bandwidth.cases),
    Item(op_timings.KEY, "ops against their bytes and against torch", 0.20, op_timings.cases),
    Item(strategies.KEY, "DIN under every strategy", 0.20, strategies.cases),
    Item("graphs", "graph replay against eager, a bucket each", 0.06, graph_replay.cases),
    Item("thresholds", "thresholds of the regimes", 0.05, thresholds.cases),
    Item("gauges", "gauges of NVML", 0.03, gauges.cases),
    Item("cost_model", "cost model against the measured times", 0.02, cost_model.cases),
    Item("sanitizer", "compute-sanitizer", 0.11, sanitizer.cases),
)
