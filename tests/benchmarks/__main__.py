"""The benchmarks, in the order of the table."""

from __future__ import annotations

import sys

from tests.benchmarks import (
    cost_model,
    count_lengths,
    din_step,
    edges,
    event_log,
    imports,
    loader,
    notebook,
    packing,
    padding,
    plan,
    sampler,
    slider_move,
)
from tests.benchmarks.runner import main

BENCHMARKS = (
    count_lengths.BENCHMARK,
    slider_move.BENCHMARK,
    edges.BENCHMARK,
    plan.TIME,
    plan.MEMORY,
    plan.RANK_TIME,
    plan.RANK_MEMORY,
    packing.WHAT_IF,
    packing.TIME,
    padding.ARRAYS,
    padding.TENSORS,
    padding.OFFSETS,
    loader.PADDED,
    loader.JAGGED,
    loader.PACKED,
    loader.LONG,
    din_step.BUCKETS,
    din_step.JAGGED,
    din_step.NESTED,
    cost_model.EXACT,
    cost_model.PEAK,
    cost_model.SPEED,
    event_log.BENCHMARK,
    sampler.BENCHMARK,
    imports.BENCHMARK,
    notebook.BENCHMARK,
)

if __name__ == "__main__":
    sys.exit(main(BENCHMARKS))
