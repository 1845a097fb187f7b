"""Counts on given lengths: by hand for a thread a sequence, and against the PTX's own counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labkit.experiments.kernel_counts import affordable, count_kernel, counts_as_json, counts_from_json, least_passes
from labkit.experiments.kernel_sources import shipped_sources
from labkit.experiments.kernel_workload import CALLS, SEGMENTED, Workload, sampled_rows
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.reports import LineCounts
from labkit.gpu.launch_config import LaunchConfig
from labkit.lengths.presets import preset

CONFIG = LaunchConfig(4, 8, 16)
LENGTHS = np.array([0, 1, 3, 4, 7, 8, 12, 40])
BASELINE = json.loads((Path(__file__).parents[1] / "kernels" / "baseline.json").read_text())


@pytest.mark.parametrize("op", KERNELS)
def test_every_op_is_counted_and_nothing_is_wrong_with_the_shipped_source(op: str) -> None:
    counts = count_kernel(op, shipped_sources(op), LENGTHS, 8, CONFIG)
    names = [part.name for part in counts.parts]
    assert names == (["short", "medium", "long", "giant"] if op in SEGMENTED else []) + ["all rows"] + (
        ["thread_per_sequence"] if op in SEGMENTED else []
    )
    assert counts.reports == ()
    assert all(part.requests > 0 and 1 <= (part.lanes_per_request or 0) <= 32 for part in counts.parts)
    assert counts_from_json(json.loads(json.dumps(counts_as_json(counts)))) == counts


def test_a_thread_a_sequence_is_as_worked_out() -> None:
    # one warp of 8 lanes: the two offsets and the result take all of them, and event i those with more than i events;
    # offsets[row + 1] is asked once, since nothing can change it
    thread = count_kernel("segment_pool", shipped_sources("segment_pool"), LENGTHS, 8, CONFIG).part(
        "thread_per_sequence"
    )
    assert thread is not None
    values = [c for c in thread.counts if c.access == "load" and c.access_bytes == 4]
    assert sum(c.requests for c in values) == LENGTHS.max()
    assert sum(c.lanes for c in values) == LENGTHS.sum()


def test_they_equal_the_counts_of_the_ptx_on_a_real_histogram() -> None:
    histogram, known = preset("cdnow"), BASELINE["cdnow"]
    lengths = sampled_rows(histogram.values, histogram.counts, 192)
    config = LaunchConfig(*known["thresholds"], longest=histogram.max)
    counts = count_kernel("segment_pool", shipped_sources("segment_pool"), lengths, 64, config)
    for name, ours in (("short", "short"), ("medium", "medium"), ("segmented", "all rows")):
        part = counts.part(ours)
        assert part is not None
        assert (part.rows, part.requests) == (known[name]["rows"], known[name]["requests"])
        assert part.lanes_per_request == pytest.approx(known[name]["lanes_per_request"], abs=5e-4)


def test_a_race_is_reported_while_it_is_counted() -> None:
    sources = shipped_sources("segment_pool")
    sources["rows.cuh"] = sources["rows.cuh"].replace("  __syncthreads();\n", "", 1)
    reports = count_kernel("segment_pool", sources, LENGTHS, 8, CONFIG).reports
    assert {"race"} <= {report.kind for report in reports}
    assert {report.file for report in reports} <= {"rows.cuh", "segment_pool.cu"}


def test_long_rows_are_counted_with_fewer_of_them() -> None:
    lengths = np.arange(1, 101) * 1000
    kept = affordable(lengths, 64)
    assert kept.sum() * 64 <= 4_000_000 + kept.max() * 64
    assert set(kept) <= set(lengths)
    assert affordable(LENGTHS, 64) is LENGTHS


def test_the_least_passes_are_one_a_request_or_what_the_bytes_need() -> None:
    of = lambda lanes, size: LineCounts("a.cu", 1, "load", "shared", size, 2, lanes, None, None, 2)  # noqa: E731
    assert least_passes(of(64, 4)) == 2
    assert least_passes(of(64, 16)) == 8
    assert least_passes(of(4, 4)) == 2


@pytest.mark.parametrize(
    ("op", "moved"),
    [
        # lengths 3 and 1, D = 2, float32: 4 events; P99 of (1, 3) is 2.98, so the width is 3
        ("bin_rows", 2 * 12),
        ("jagged_to_padded", (4 + 6) * 8 + 2 * 8),
        ("padded_to_jagged", (4 + 4) * 8 + 2 * 8),
        ("segment_pool", (4 + 2) * 8 + 2 * 12),
        ("embedding_pool", (4 + 2) * 8 + 4 * 8 + 2 * 12),
        ("din_attention", 4 * 12 + 2 * 16 + 2 * 12),
    ],
)
def test_the_bytes_of_the_floor_are_each_array_once(op: str, moved: int) -> None:
    assert Workload(op, np.array([3, 1]), 2, CONFIG).floor_bytes == moved


def test_every_op_of_the_catalog_has_a_workload() -> None:
    assert list(CALLS) == list(KERNELS)
