"""collate by hand: the cut, the width, the ghost rows, the fields, and what is refused."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.errors import LabkitError, PolicyError, ShapeError
from labkit.layouts.collate import JaggedBatch, collate
from labkit.layouts.padded import PaddedBatch
from labkit.lengths.histogram import LengthHistogram

ROWS = BatchPolicy("bucket_rows", rows=3, bucket_edges=(4, 8))
BUDGET = BatchPolicy("bucket_budget", token_budget=16, bucket_edges=(4, 8))
GRAPH = BatchPolicy("bucket_graph", token_budget=16, bucket_edges=(4, 8))
JAGGED = BatchPolicy("jagged", token_budget=10, max_rows=3)


def history(n: int, start: int = 1) -> np.ndarray[Any, Any]:
    """Events start, start + 1, ...: oldest first."""
    return np.arange(start, start + n)


# --- the cut, the width, the ghost rows


def test_a_bucket_is_padded_to_its_width_on_the_right() -> None:
    batch = collate(ROWS)([history(2), history(0), history(4)])
    assert isinstance(batch, PaddedBatch)
    assert batch.values.tolist() == [[1, 2, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]]
    assert batch.lengths.tolist() == [2, 0, 4]
    assert batch.valid.tolist() == [[True, True, False, False], [False] * 4, [True] * 4]
    assert batch.rows == 3
    assert (batch.lengths.dtype, batch.valid.dtype) == (torch.int64, torch.bool)


def test_the_most_recent_events_are_kept_under_the_cap() -> None:
    batch = collate(replace(ROWS, max_length=3))([history(5), history(2), history(3)])
    # the edges 4 and 8 collapse to one edge, 3
    assert batch.values.tolist() == [[3, 4, 5], [1, 2, 0], [1, 2, 3]]
    assert batch.lengths.tolist() == [3, 2, 3]


def test_a_width_below_its_edge_cuts_what_lies_above() -> None:
    policy = replace(ROWS, bucket_widths=(2, 6))
    assert collate(policy)([history(4)]).values.tolist() == [[3, 4]]
    assert collate(policy)([history(7)]).values.tolist() == [[2, 3, 4, 5, 6, 7]]
    # rounded up to 4, the first width leaves room for all four events
    assert collate(replace(policy, length_multiple=4))([history(4)]).values.tolist() == [[1, 2, 3, 4]]


def test_the_longest_history_fits_where_overflow_truncates() -> None:
    policy = replace(ROWS, overflow="truncate", length_multiple=6)
    batch = collate(policy)([history(10), history(6)])
    assert batch.values.tolist() == [[3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]]
    assert batch.lengths.tolist() == [8, 6]


def test_a_length_at_an_edge_belongs_to_its_bucket() -> None:
    # edges [3, 5, 6], lengths [1, 4, 3, 5, 6, 2] -> {1, 3, 2}, {4, 5}, {6}
    own = collate(BatchPolicy("bucket_rows", rows=3, bucket_edges=(3, 5, 6)))
    assert own([history(1), history(3), history(2)]).values.shape == (3, 3)
    assert own([history(4), history(5)]).values.shape == (2, 5)
    assert own([history(6)]).values.shape == (1, 6)


@pytest.mark.parametrize("policy", [replace(ROWS, pad_to="batch_max"), BatchPolicy("pad_batch", rows=3)])
def test_a_batch_padded_to_its_own_longest_row(policy: BatchPolicy) -> None:
    assert collate(policy)([history(2), history(3)]).values.shape == (2, 3)
    assert collate(replace(policy, length_multiple=4))([history(2), history(3)]).values.shape == (2, 4)
    assert collate(policy)([history(0)]).values.shape == (1, 1)  # a width is at least 1


def test_ghost_rows_fill_a_static_shape() -> None:
    # bucket 1: 16 // 4 = 4 rows fit; 5 sequences make 2 batches of ceil(5 / 2) = 3 rows; bucket 2: one batch of 1 row
    own = collate(GRAPH, histogram=[1, 2, 2, 3, 4, 8], padding_value=-1)
    batch = own([history(1), history(3)])
    assert batch.values.tolist() == [[1, -1, -1, -1], [1, 2, 3, -1], [-1, -1, -1, -1]]
    assert batch.lengths.tolist() == [1, 3, 0]
    assert batch.rows == 2
    assert own([history(8)]).values.shape == (1, 8)


def test_static_rows_follow_the_policy_alone_where_partial_batches_are_dropped() -> None:
    batch = collate(replace(GRAPH, drop_last=True))([history(2)] * 4)
    assert batch.values.shape == (4, 4)


def test_pad_max_and_pad_recent_take_their_width_from_the_lengths() -> None:
    lengths = [*range(1, 101), 500]  # P99 of 101 values is the 100th
    assert collate(BatchPolicy("pad_max"), histogram=lengths)([history(7)]).values.shape == (1, 500)
    batch = collate(BatchPolicy("pad_recent"), histogram=LengthHistogram.from_lengths(lengths))([history(500)])
    assert batch.values.tolist() == [list(range(401, 501))]
    assert collate(BatchPolicy("pad_recent", max_length=5))([history(7)]).values.tolist() == [[3, 4, 5, 6, 7]]


# --- values and offsets


def test_the_jagged_strategy_gives_values_and_offsets() -> None:
    batch = collate(replace(JAGGED, max_length=3))([history(2), history(0), history(5)])
    assert isinstance(batch, JaggedBatch)
    assert batch.values.tolist() == [1, 2, 3, 4, 5]
    assert batch.offsets.tolist() == [0, 2, 2, 5]
    assert batch.offsets.dtype == torch.int64
    assert batch.rows == 3


def test_ghost_rows_of_the_jagged_layout_are_empty() -> None:
    batch = collate(replace(GRAPH, max_length=3), "jagged", histogram=[1, 2, 2, 3, 8])([history(1), history(8)])
    # one bucket, width 3: 16 // 3 = 5 rows fit, 5 sequences make one batch of 5 rows
    assert batch.values.tolist() == [1, 6, 7, 8]
    assert batch.offsets.tolist() == [0, 1, 4, 4, 4, 4]
    assert batch.rows == 2


def test_no_event_at_all_is_an_empty_array() -> None:
    batch = collate(JAGGED)([np.zeros((0, 2), np.float32)] * 2)
    assert batch.values.shape == (0, 2)
    assert batch.offsets.tolist() == [0, 0, 0]


# --- what a sample may be


def test_an_item_equal_to_the_padding_is_an_event() -> None:
    batch = collate(ROWS)([np.array([0, 5, 0])])
    assert batch.lengths.tolist() == [3]
    assert batch.valid.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize(
    ("sample", "dtype"),
    [
        ([1, 2], torch.int64),
        ([1.5, 2], torch.float32),
        ([True, False], torch.bool),
        (np.array([1, 2], np.int32), torch.int32),
        (np.array([1, 2], np.float64), torch.float64),
        (torch.tensor([1, 2], dtype=torch.bfloat16), torch.bfloat16),
        (torch.tensor([1.0, 2], requires_grad=True), torch.float32),
        (np.array([9, 1, 9, 2])[1::2], torch.int64),
    ],
    ids=lambda value: str(value).replace("\n", ""),
)
@pytest.mark.parametrize("layout", ["padded", "jagged"])
def test_the_dtype_is_kept(sample: Any, dtype: torch.dtype, layout: str) -> None:
    batch = collate(ROWS, layout)([sample, sample])
    expected = torch.as_tensor(sample).detach().to(dtype)
    assert batch.values.dtype == dtype
    first = batch.values[0, :2] if layout == "padded" else batch.values[:2]
    assert torch.equal(first, expected)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, list], ids=["numpy", "torch", "list"])
def test_events_may_be_vectors(kind: Any) -> None:
    rows = [kind([[1.0, 2.0], [3.0, 4.0]]), kind([[5.0, 6.0]])]
    assert collate(ROWS)(rows).values.tolist() == [[[1, 2], [3, 4], [0, 0], [0, 0]], [[5, 6], [0, 0], [0, 0], [0, 0]]]
    assert collate(ROWS, "jagged")(rows).values.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_lists_of_ints_and_of_floats_meet_in_float32_and_empty_ones_take_part_in_nothing() -> None:
    batch = collate(ROWS)([[], [1, 2], [0.5]])
    assert batch.values.dtype == torch.float32
    assert batch.values.tolist() == [[0] * 4, [1, 2, 0, 0], [0.5, 0, 0, 0]]
    assert collate(ROWS)([[], [[1, 2]]]).values.shape == (2, 4, 2)
    assert collate(ROWS)([[]]).values.dtype == torch.int64


def test_named_sequences_are_cut_together_and_fixed_fields_are_stacked() -> None:
    samples = [
        {"items": history(5), "times": torch.arange(5) * 0.5, "label": 1, "profile": [0.5, 1.5], "user": np.int32(7)},
        {"items": history(1), "times": torch.arange(1) * 0.5, "label": 0, "profile": [2.5, 3.5], "user": np.int32(8)},
    ]
    policy = replace(GRAPH, max_length=4, token_budget=12)  # 12 // 4 = 3 rows; 3 sequences, one batch
    padded = collate(policy, histogram=[1, 5, 5], sequences=["items", "times"])(samples)
    assert list(padded.values) == ["items", "times", "label", "profile", "user"]
    assert padded.values["items"].tolist() == [[2, 3, 4, 5], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert padded.values["times"].tolist() == [[0.5, 1, 1.5, 2], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert padded.values["label"].tolist() == [1, 0, 0]
    assert padded.values["profile"].tolist() == [[0.5, 1.5], [2.5, 3.5], [0, 0]]
    dtypes = {name: field.dtype for name, field in padded.values.items()}
    assert dtypes == {
        "items": torch.int64,
        "times": torch.float32,
        "label": torch.int64,
        "profile": torch.float32,
        "user": torch.int32,
    }
    jagged = collate(policy, "jagged", histogram=[1, 5, 5], sequences=["items", "times"])(samples)
    assert jagged.values["items"].tolist() == [2, 3, 4, 5, 1]
    assert jagged.offsets.tolist() == [0, 4, 5, 5]
    assert jagged.values["profile"].tolist() == [[0.5, 1.5], [2.5, 3.5], [0, 0]]


def test_without_names_every_field_with_a_dimension_is_a_sequence() -> None:
    batch = collate(ROWS)([{"items": [1, 2], "label": 0.5}])
    assert batch.values["items"].tolist() == [[1, 2, 0, 0]]
    assert batch.values["label"].tolist() == [0.5]


def test_the_samples_are_left_as_they_were() -> None:
    own = history(6)
    own.flags.writeable = False
    collate(replace(ROWS, max_length=3))([own]).values.add_(100)
    assert own.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_collate_survives_pickling() -> None:
    own = collate(GRAPH, histogram=[1, 2, 2, 3, 4, 8], padding_value=-1)
    again = pickle.loads(pickle.dumps(own))
    for ours, theirs in zip(own([history(2)]), again([history(2)]), strict=True):
        assert torch.equal(torch.as_tensor(ours), torch.as_tensor(theirs))
    assert again.policy == GRAPH


# --- what is refused


def refused(error: type[LabkitError], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            BatchPolicy("pad_max"),
            "pad_max pads to the longest length of the data set, which no policy holds: pass histogram=",
        ),
        (BatchPolicy("pad_recent"), "pad_recent without max_length pads to ceil(P99) of the lengths: pass histogram="),
        (GRAPH, "static shapes of bucket_graph depend on how many sequences each bucket has: pass histogram="),
        (replace(ROWS, static_shapes=True), "static shapes of bucket_rows depend on"),
    ],
)
def test_a_shape_that_depends_on_the_lengths_needs_them(policy: BatchPolicy, message: str) -> None:
    with refused(PolicyError, message):
        collate(policy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": JAGGED, "layout": "padded"}, "strategy jagged has no padded layout"),
        (
            {"policy": ROWS, "layout": "csr"},
            "layout 'csr' does not exist: use one of padded, jagged, segmented, packed_rows, ",
        ),
        (
            {"policy": ROWS, "layout": "sparse"},
            "strategy bucket_rows has no sparse layout. Use layout='padded' or layout='jagged', or another strategy.",
        ),
        (
            {"policy": ROWS, "layout": "packed_rows"},
            "strategy bucket_rows has no packed_rows layout. Use layout='padded' or layout='jagged', or",
        ),
        (
            {"policy": BatchPolicy("packed", capacity=9), "layout": "padded"},
            "has no padded layout: its batches are filled by packs, so that no width is planned. Use layout='packed",
        ),
        (
            {"policy": BatchPolicy("sparse"), "layout": "padded"},
            "strategy sparse has no padded layout: its batches are filled by real events, so that no width is planned.",
        ),
        (
            {"policy": BatchPolicy("rnn_packed"), "layout": "padded"},
            "strategy rnn_packed has no padded layout: it pads",
        ),
        (
            {"policy": BatchPolicy("packed")},
            "packed without capacity packs to the longest length of the data set, which no policy holds: set capacity",
        ),
        ({"policy": BatchPolicy("packed", capacity=4), "histogram": [9]}, "longest length 9 > capacity 4"),
        ({"policy": ROWS, "padding_value": "0"}, "padding_value must be a number: got '0' (str)."),
        ({"policy": ROWS, "histogram": [9]}, "longest length 9 > last bucket edge 8"),
        ({"policy": JAGGED, "histogram": [11]}, "longest length 11 is above token_budget 10"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_batch(arguments: dict[str, Any], message: str) -> None:
    with refused(PolicyError, message):
        collate(**arguments)


@pytest.mark.parametrize(
    ("policy", "lengths", "message"),
    [
        (
            ROWS,
            [3, 7],
            "not made by this policy: lengths 3 and 7 belong to the bucket up to 4 and the bucket up to 8. Use Bucket",
        ),
        (ROWS, [1] * 4, "batch of 4 rows, but bucket_rows makes at most 3 in the bucket up to 4"),
        (BUDGET, [5] * 3, "batch of 3 rows, but bucket_budget makes at most 2 in the bucket up to 8"),
        (BatchPolicy("pad_batch", rows=2), [1] * 3, "batch of 3 rows, but pad_batch makes at most 2 in a batch"),
        (
            ROWS,
            [8, 600],
            "length 600 (sample 1 of the batch) is above the last bucket edge 8: raise it, set max_length",
        ),
        (replace(ROWS, overflow="drop"), [9], "is above the last bucket edge 8, which overflow 'drop' leaves out"),
        (JAGGED, [1] * 4, "batch of 4 rows, but jagged makes at most max_rows 3"),
        (JAGGED, [5, 6], "batch of 11 events, but jagged makes at most token_budget 10"),
        (ROWS, [], "batch of 0 rows: no policy makes one."),
    ],
)
def test_a_batch_of_another_policy_is_refused(policy: BatchPolicy, lengths: list[int], message: str) -> None:
    with refused(PolicyError, message):
        collate(policy)([history(n) for n in lengths])


def test_rows_beyond_the_static_shape_and_lengths_beyond_the_data_set_are_refused() -> None:
    with refused(PolicyError, "batch of 4 rows, but bucket_graph makes at most 3 in the bucket up to 4"):
        collate(GRAPH, histogram=[1, 2, 2, 3, 4])([history(1)] * 4)
    with refused(
        PolicyError, "length 6 (sample 0 of the batch) is above 5, the longest of the histogram given to collate"
    ):
        collate(BatchPolicy("pad_max", length_multiple=8), histogram=[5])([history(6)])


@pytest.mark.parametrize(
    ("samples", "sequences", "message"),
    [
        (
            [{"a": [1, 2], "b": [1]}],
            None,
            "sequences of one sample must be aligned: a has 2 events, b has 1 (sample 0 of",
        ),
        ([{"a": [1]}, {"b": [1]}], None, "samples of a batch must have the same fields: expected a, got b (1)."),
        ([{"a": [1]}, [1]], None, "samples of a batch must have the same fields: expected a, got a list (1)."),
        ([{"a": [1]}], ("b",), "sequences name b: the samples have a."),
        ([{"a": 1}], None, "no field is a sequence: the samples have a."),
        ([[1]], ("a",), "sequences=('a',) names fields, but a sample is a bare list."),
        ([([1], [2])], None, "history is a tuple, which may mean anything"),
        ([[[1], [1, 2]]], None, "history is a list of rows of different lengths: give (T,) or (T, D)."),
        ([np.zeros((1, 2, 3))], None, "history must be (T,) or (T, D): got shape (1, 2, 3)."),
        ([np.int64(3)], None, "history must be (T,) or (T, D): got shape ()."),
        ([np.zeros((1, 2)), np.zeros((1, 3))], None, "history has events of different shapes: (2,), (3,)."),
        ([{"a": [1], "b": [1]}, {"a": [1], "b": [1, 2]}], ("a",), "b has different shapes and is no sequence"),
        ([np.zeros(1, np.int32), np.zeros(1, np.int64)], None, "history has several dtypes, torch.int32, torch.int64"),
        ([["a"]], None, "history has dtype <U1, which torch lacks: give numbers or booleans."),
        ([[2**70]], None, "history has dtype object, which torch lacks"),
        ([torch.zeros(1, device="meta")], None, "history is on meta: samples must be on the CPU."),
    ],
)
def test_samples_that_do_not_fit_together_are_refused(samples: list[Any], sequences: Any, message: str) -> None:
    with refused(ShapeError, message):
        collate(ROWS, sequences=sequences)(samples)


@pytest.mark.parametrize(
    ("value", "dtype"), [(0.5, np.int64), (-1, np.uint8), (300, np.uint8), (float("nan"), np.int64)]
)
def test_padding_that_the_dtype_cannot_hold_is_refused(value: float, dtype: Any) -> None:
    with refused(ShapeError, f"padding_value {value} does not fit history of torch.{np.dtype(dtype)}"):
        collate(ROWS, padding_value=value)([np.ones(2, dtype)])
