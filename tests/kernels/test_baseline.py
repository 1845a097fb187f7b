"""The counts of the segmented kernels are those of the committed baseline, and lanes are used well."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.kernels.baseline import DIM, FILE, REAL, ROWS, ZIPF, as_text, by_thread, entry, histogram, sampled

COMMITTED = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", [*REAL, ZIPF])
def test_counts_are_those_of_the_baseline(name: str) -> None:
    assert entry(name) == COMMITTED[name], "run: python -m tests.kernels.baseline --write"


def test_the_baseline_is_written_as_the_command_writes_it() -> None:
    assert list(COMMITTED) == [*REAL, ZIPF]
    assert as_text(COMMITTED) == FILE.read_text()


def test_segments_use_lanes_twice_as_well_as_a_thread_a_sequence_on_zipf() -> None:
    segmented, threads = COMMITTED[ZIPF]["segmented"], COMMITTED[ZIPF]["thread_per_sequence"]
    assert segmented["lanes_per_request"] >= 2 * threads["lanes_per_request"]
    assert segmented["lanes_per_issue"] >= 2 * threads["lanes_per_issue"]
    # and if only lanes that fetch values count, so that the search for work and blocks without any are waste:
    events = COMMITTED[ZIPF]["events"]
    assert events * DIM / 4 / segmented["requests"] >= 2 * events / threads["requests"]


def test_lanes_of_a_thread_a_sequence_are_as_worked_out() -> None:
    # one warp, lane i with i + 1 events. NVRTC unrolls by four: at most 3 single loads, then 32 / 4 turns of four. With
    # two offsets and a result; the lanes are those of all events, and 32 in each of the three
    tally = by_thread(np.arange(1, 33))
    assert tally.requests == 3 + 8 * 4 + 3
    assert tally.request_lanes == 32 * 33 // 2 + 3 * 32


def test_the_sample_has_the_shape_of_the_histogram() -> None:
    lengths = histogram(ZIPF)
    sample = sampled(lengths)
    assert len(sample) == ROWS
    mean = float((lengths.values * lengths.counts).sum() / lengths.counts.sum())
    assert sample.mean() == pytest.approx(mean, rel=0.05)
    assert sample.tolist() == sampled(lengths).tolist()
    assert sample.tolist() != sorted(sample.tolist())
