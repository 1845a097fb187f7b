"""The rule of each tool at its edges, written out as the tool has it, against the buckets that labkit makes of it."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.groups import resolve_groups
from labkit.batching.policy import BatchPolicy
from labkit.interchange import capture_sizes, lhotse, tf_data
from labkit.interchange.foreign import ForeignEdges
from labkit.lengths.histogram import LengthHistogram

NUMBERS = st.sets(st.integers(2, 60), min_size=1, max_size=8).map(sorted)


def lhotse_bucket(bins: list[int], length: int) -> int:
    """``SamplingConstraint.select_bucket``."""
    return bisect_left(bins, length)


def tf_bucket(boundaries: list[int], length: int) -> int:
    """``element_to_bucket_id``: the one i with min[i] <= length < max[i]."""
    low, high = [-(2**31), *boundaries], [*boundaries, 2**31 - 1]
    return next(i for i in range(len(low)) if low[i] <= length < high[i])


def vllm_size(sizes: list[int], tokens: int) -> int | None:
    """The padded size of a step: each size takes what is above the one before it; None: no graph."""
    for low, size in pairwise([0, *sizes]):
        if low < tokens <= size:
            return size
    return None


def buckets(edges: tuple[int, ...], lengths: list[int]) -> list[int]:
    """The bucket of each length in a policy with these edges."""
    policy = BatchPolicy("bucket_rows", bucket_edges=edges, overflow="drop")
    return resolve_groups(policy, None).of_lengths(np.array(lengths)).tolist()


def around(numbers: list[int]) -> list[int]:
    """Every length from 0 to beyond the last number: at each edge, one below and one above it."""
    return list(range(numbers[-1] + 3))


@given(NUMBERS)
def test_lhotse_bins_are_upper_inclusive(bins: list[int]) -> None:
    lengths = around(bins)
    edges = lhotse.parse(bins, "f").edges_on(LengthHistogram.from_lengths(lengths))
    assert buckets(edges, lengths) == [lhotse_bucket(bins, length) for length in lengths]


@given(NUMBERS)
def test_tf_data_boundaries_are_upper_exclusive(boundaries: list[int]) -> None:
    lengths = around(boundaries)
    edges = tf_data.parse(boundaries, "f").edges_on(LengthHistogram.from_lengths(lengths))
    assert buckets(edges, lengths) == [tf_bucket(boundaries, length) for length in lengths]


@given(NUMBERS)
def test_capture_sizes_are_rounded_up_to(sizes: list[int]) -> None:
    steps = around(sizes)[1:]
    edges = capture_sizes.parse(sizes, "f").edges_on(LengthHistogram.from_lengths(steps))
    padded = [edges[k] if k < len(edges) else None for k in buckets(edges, steps)]
    assert padded == [vllm_size(sizes, tokens) for tokens in steps]


def test_one_length_on_the_edge_tells_the_conventions_apart() -> None:
    # a sequence of 8 events: in Lhotse's bin 8, above tf.data's boundary 8, in the graph of 8 tokens
    assert lhotse.parse([8, 20], "f").edges == (8, 20)
    assert tf_data.parse([8, 20], "f").edges == (7, 19)
    assert capture_sizes.parse([8, 20], "f").edges == (8, 20)


# --- the end


@pytest.mark.parametrize(
    ("found", "edges", "above"),
    [
        (lhotse.parse([8, 20], "f"), (8, 20, 50), 0),
        (lhotse.parse({"bucket_duration_bins": [8, 20], "max_duration": 30}, "f"), (8, 20, 30), 1),
        (lhotse.parse({"bucket_duration_bins": [8, 20], "max_duration": 20.0}, "f"), (8, 20), 2),
        (lhotse.parse({"bucket_duration_bins": [8, 20], "bucket_batch_size": [4, 2]}, "f"), (8, 20), 2),
        (lhotse.parse({"duration_bins": [8, 20], "max_duration": 3}, "f"), (8, 20, 50), 0),  # Lhotse's own: a budget
        (tf_data.parse([9, 21], "f"), (8, 20, 50), 0),
        (tf_data.parse([9, 51], "f"), (8, 50), 0),  # nothing is in the open bucket
        (capture_sizes.parse([8, 20], "f"), (8, 20), 2),
    ],
    ids=["open", "max_duration", "max_duration at the last bin", "batch sizes", "budget", "tf", "tf empty", "sizes"],
)
def test_what_is_above_the_last_edge(found: ForeignEdges, edges: tuple[int, ...], above: int) -> None:
    histogram = LengthHistogram.from_lengths([1, 8, 9, 20, 21, 50])
    assert found.edges_on(histogram) == edges
    assert found.above(histogram) == above


@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        ([16, 8, 4], (4, 8, 16)),  # vLLM's older lists fall
        ([16], (16,)),
        ({"cudagraph_capture_sizes": [1, 2, 4]}, (1, 2, 4)),
        ({"compilation_config": {"cudagraph_capture_sizes": [1, 2], "compile_sizes": [7]}}, (1, 2)),
    ],
)
def test_capture_sizes_wherever_they_stand(data: Any, sizes: tuple[int, ...]) -> None:
    assert capture_sizes.parse(data, "f").edges == sizes


def test_whole_floats_are_whole_numbers() -> None:
    assert lhotse.parse([8.0, 20.0], "f").edges == (8, 20)
