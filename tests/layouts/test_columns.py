"""RaggedDataset and its columns by hand: samples, indices, pickling, loaders, and what is refused."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, default_collate

from labkit.batching.pieces import PieceIndex
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.errors import ShapeError
from labkit.jagged import Jagged
from labkit.layouts.collate import collate
from labkit.layouts.columns import RaggedColumns
from labkit.layouts.packed import PackedDataset
from labkit.layouts.pieces import Pieces, PieceSample
from labkit.layouts.ragged_dataset import RaggedDataset
from tests.layouts.test_columns_agree import assert_same

# two workers are a test of what crosses processes, not of speed: one core is enough
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

OFFSETS = np.array([0, 2, 2, 5])
ITEMS = Jagged(np.array([5, 9, 9, 2, 7]), OFFSETS)
TIMES = Jagged(torch.tensor([0.5, 1, 2, 3, 4], dtype=torch.bfloat16), torch.from_numpy(OFFSETS))
FIELDS = {"items": ITEMS, "times": TIMES, "label": np.array([1, 0, 1]), "profile": torch.arange(6.0).view(3, 2)}
POLICY = BatchPolicy("pad_batch", rows=3, max_length=2)


def plain(sample: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.as_tensor(value).tolist() for name, value in sample.items()}


def test_a_sample_is_a_mapping_of_views() -> None:
    data = RaggedDataset(FIELDS)
    assert (len(data), data.lengths.tolist()) == (3, [2, 0, 3])
    assert plain(data[2]) == {"items": [9, 2, 7], "times": [2, 3, 4], "label": 1, "profile": [4, 5]}
    assert plain(data[-2]) == {"items": [], "times": [], "label": 0, "profile": [2, 3]}
    assert np.shares_memory(data[0]["items"], ITEMS.values)


def test_a_sample_without_names_is_a_view() -> None:
    data = RaggedDataset(ITEMS)
    assert [sample.tolist() for sample in data] == [[5, 9], [], [9, 2, 7]]
    assert collate(POLICY)(data.__getitems__([2, 0])).values.tolist() == [[2, 7], [5, 9]]


def test_columns_are_a_sequence_of_samples() -> None:
    columns = RaggedDataset(FIELDS).__getitems__([2, 0])
    assert isinstance(columns, RaggedColumns)
    assert (len(columns), columns.starts.tolist(), columns.lengths.tolist()) == (2, [2, 0], [3, 2])
    assert [sample["items"].tolist() for sample in columns] == [[9, 2, 7], [5, 9]]
    assert columns[-1]["items"].tolist() == [5, 9]
    assert plain(columns[1:][0]) == plain(columns[1])
    with pytest.raises(IndexError, match="sample 2 does not exist: the batch has 2"):
        columns[2]


def test_the_most_recent_events_in_slots_by_name() -> None:
    batch = collate(POLICY, padding_value=8)(RaggedDataset(FIELDS).__getitems__([2, 1, 0]))
    assert batch.values["items"].tolist() == [[2, 7], [8, 8], [5, 9]]
    assert batch.values["times"].tolist() == [[3, 4], [8, 8], [0.5, 1]]
    assert batch.values["times"].dtype == torch.bfloat16
    assert batch.values["label"].tolist() == [1, 0, 1]
    assert batch.values["profile"].tolist() == [[4, 5], [2, 3], [0, 1]]
    assert (batch.lengths.tolist(), batch.rows) == ([2, 0, 2], 3)


@pytest.mark.parametrize(
    "indices",
    [np.array([2, 0]), np.array([2, 0], np.int32), [-1, 0], (2, 0), [np.int64(2), 0], [PieceIndex(2, 0, 0, 3), 0]],
    ids=str,
)
def test_indices_of_any_integer_kind(indices: Any) -> None:
    assert RaggedDataset(FIELDS).__getitems__(indices).numbers.tolist() == [2, 0]


def test_values_that_are_not_contiguous_and_read_only() -> None:
    every_other = np.arange(10)[::2]
    every_other.flags.writeable = False
    data = RaggedDataset(Jagged(every_other, OFFSETS))
    assert collate(POLICY)(data.__getitems__([2, 0])).values.tolist() == [[6, 8], [0, 2]]


def test_a_batch_does_not_share_memory_with_the_data() -> None:
    data = RaggedDataset(Jagged(np.array([5, 9]), np.array([0, 2])))
    collate(BatchPolicy("jagged", token_budget=9))(data.__getitems__([0])).values.add_(1)
    assert data[0].tolist() == [5, 9]


# --- between processes, and with other tools


def test_pickled_columns_hold_their_own_events_alone() -> None:
    long = RaggedDataset({"items": Jagged.from_lengths(np.arange(100_000), [99_990, 4, 6]), "label": np.arange(3)})
    sent = pickle.dumps(long.__getitems__([2, 1]))
    assert len(sent) < 2_000
    again = pickle.loads(sent)
    assert [sample["items"].tolist() for sample in again] == [[*range(99_994, 100_000)], [*range(99_990, 99_994)]]
    assert [sample["label"] for sample in again] == [2, 1]
    assert_same(collate(POLICY)(again), collate(POLICY)(long.__getitems__([2, 1])))


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize(
    "policy", [POLICY, BatchPolicy("packed", capacity=2, rows=2, overflow="split")], ids=lambda policy: policy.strategy
)
def test_workers_give_what_the_main_process_gives(policy: BatchPolicy, context: str) -> None:
    data: Any = RaggedDataset(FIELDS)
    sampler = BucketBatchSampler(data.lengths, policy, seed=1)
    wrapped = PackedDataset(data) if policy.strategy == "packed" else data

    def batches(workers: int) -> list[Any]:
        sampler.set_epoch(0)
        loader: DataLoader[Any] = DataLoader(
            wrapped,
            batch_sampler=sampler,
            collate_fn=collate(policy, sequences=["items", "times"]),
            num_workers=workers,
            multiprocessing_context=context if workers else None,
        )
        return list(loader)

    assert_same(tuple(batches(1)), tuple(batches(0)))


def test_a_collate_that_knows_no_columns_sees_samples() -> None:
    data: Any = RaggedDataset({"items": Jagged.from_lengths(np.arange(6), [2, 2, 2]), "label": np.arange(3)})
    loader: DataLoader[Any] = DataLoader(Subset(data, [2, 0]), batch_size=2, collate_fn=default_collate)
    (batch,) = loader
    assert batch["items"].tolist() == [[4, 5], [0, 1]]
    assert batch["label"].tolist() == [2, 0]


def test_pieces_are_a_sequence_of_piece_samples() -> None:
    data = PackedDataset(RaggedDataset(ITEMS))
    pieces = data.__getitems__([PieceIndex(2, 0, 1, 3), PieceIndex(0, 0, 0, 2), PieceIndex(2, 1, 0, 1)])
    assert isinstance(pieces, Pieces)
    found = [(piece.sample.tolist(), *piece[1:]) for piece in pieces]
    assert found == [([9, 2, 7], 0, 1, 3), ([5, 9], 0, 0, 2), ([9, 2, 7], 1, 0, 1)]
    assert [(piece.sample.tolist(), *piece[1:]) for piece in pieces[1:]] == found[1:]
    assert isinstance(data[PieceIndex(0, 0, 0, 2)], PieceSample)
    assert len(pickle.loads(pickle.dumps(pieces))) == 3


# --- what is refused


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": np.zeros(3)}, "no field is a Jagged: got label. Give those with one entry an event as Jagged("),
        ({}, "no field is a Jagged: got none."),
        (
            {"items": ITEMS, "times": Jagged(np.zeros(5), np.array([0, 3, 3, 5]))},
            "the sequences of one sample must be aligned: times has 5 events in 3 rows, items has 5 in 3, or others",
        ),
        ({"items": ITEMS, "label": np.zeros(2)}, "label must be (3, ...), one entry a sample: got (2,)."),
        ({"items": ITEMS, "label": 1}, "label must be (3, ...), one entry a sample: got ()."),
        ({"items": ITEMS, "label": np.array(["a"] * 3)}, "label has dtype <U1, which torch lacks"),
        ({"items": ITEMS, "label": torch.zeros(3, device="meta")}, "label is on meta: samples must be on the CPU."),
    ],
)
def test_fields_that_do_not_make_samples(fields: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        RaggedDataset(fields)


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([0, 3], IndexError, "sample 3 does not exist: the data set has 3."),
        ([-4], IndexError, "sample -4 does not exist"),
        ([0.0], ShapeError, "indices must be (B,) whole numbers: got shape (1,), float64."),
        ([[0]], ShapeError, "indices must be (B,) whole numbers: got shape (1, 1), int64."),
        ([True], ShapeError, "indices must be (B,) whole numbers: got shape (1,), bool."),
    ],
)
def test_indices_of_no_sample(indices: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        RaggedDataset(FIELDS).__getitems__(indices)


@pytest.mark.parametrize(
    ("fields", "sequences", "message"),
    [
        (
            FIELDS,
            ["items"],
            "sequences= must name the fields with one entry an event: expected items, times, got items.",
        ),
        (FIELDS, ["items", "clicks"], "sequences name clicks: the samples have items, times, label, profile."),
        (ITEMS, ["items"], "sequences=('items',) names fields, but a sample is a bare ndarray."),
    ],
)
def test_sequences_that_are_not_those_of_the_columns(fields: Any, sequences: list[str], message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        collate(POLICY, sequences=sequences)(RaggedDataset(fields).__getitems__([0]))
