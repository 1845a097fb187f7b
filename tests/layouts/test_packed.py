"""Packs as tensors: who may attend to whom, positions, fields, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from labkit.batching.pieces import PieceIndex
from labkit.batching.policy import BatchPolicy
from labkit.errors import LabkitError, PolicyError, ShapeError
from labkit.layouts.collate import collate
from labkit.layouts.packed import PackedBatch, PackedDataset, PieceSample, block_mask
from labkit.layouts.packed_collate import PackedCollate

POLICY = BatchPolicy("packed", capacity=4, rows=2)
SPLIT = BatchPolicy("packed", capacity=4, rows=2, overflow="split")


def packed(samples: list[Any], rows: list[int], policy: BatchPolicy = POLICY, **options: Any) -> PackedBatch:
    """A batch of whole samples in the given rows."""
    own = collate(policy, **options)
    assert isinstance(own, PackedCollate)
    return own([PieceSample(s, row, 0, events_of(s)) for s, row in zip(samples, rows, strict=True)])


def events_of(sample: Any) -> int:
    return len(sample["items"] if isinstance(sample, dict) else sample)


# --- C15: packed users do not see one another


def test_the_mask_is_block_diagonal_and_causal() -> None:
    # C15: segments of 2 and 1
    batch = packed([[5, 6], [7]], [0, 0], BatchPolicy("packed", capacity=3))
    assert batch.segment_ids.tolist() == [[1, 1, 2]]
    assert batch.positions.tolist() == [[0, 1, 0]]
    assert block_mask(batch.segment_ids, causal=True).int().tolist() == [[[1, 0, 0], [1, 1, 0], [0, 0, 1]]]
    assert block_mask(batch.segment_ids).int().tolist() == [[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]


def test_padding_attends_to_nothing_and_nobody_to_padding() -> None:
    mask = block_mask(torch.tensor([[1, 0], [0, 0]]))
    assert mask.int().tolist() == [[[1, 0], [0, 0]], [[0, 0], [0, 0]]]
    with pytest.raises(ShapeError, match=r"^segment_ids must be \(R, W\): got shape \(3,\)\.$"):
        block_mask(torch.tensor([1, 1, 2]))


class TinyAttention(torch.nn.Module):
    """Items and positions, one head of attention, a residual."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.items = torch.nn.Embedding(50, 8)
        self.places = torch.nn.Embedding(8, 8)
        self.mix = torch.nn.Linear(8, 24)

    def forward(self, batch: PackedBatch, mask: Tensor) -> Tensor:
        assert isinstance(batch.values, Tensor)
        x = self.items(batch.values) + self.places(batch.positions)
        query, key, value = self.mix(x)[:, None].chunk(3, dim=-1)
        found: Tensor = x + scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None])[:, 0]
        return found


def outputs_of_b(items_of_a: list[int], mask_of: Any) -> Tensor:
    """Outputs of user B, who is in one pack with A and C."""
    batch = packed([items_of_a, [4, 5, 6], [7, 8]], [0, 0, 0], BatchPolicy("packed", capacity=10))
    return TinyAttention()(batch, mask_of(batch.segment_ids))[batch.segment_ids == 2]


def all_real(segment_ids: Tensor) -> Tensor:
    """A wrong mask: every event of the pack, whoever's it is."""
    real = segment_ids != 0
    return real[:, :, None] & real[:, None, :]


@pytest.mark.parametrize("causal", [False, True])
def test_changing_one_user_leaves_the_others_bit_equal(causal: bool) -> None:
    before, after = (outputs_of_b(a, lambda ids: block_mask(ids, causal=causal)) for a in ([1, 2, 3], [9, 30, 44]))
    assert before.shape == (3, 8)
    assert torch.equal(before, after)


def test_with_a_wrong_mask_the_same_comparison_fails() -> None:
    before, after = (outputs_of_b(a, all_real) for a in ([1, 2, 3], [9, 30, 44]))
    assert not torch.equal(before, after)


@pytest.mark.parametrize("causal", [False, True])
def test_a_user_in_a_pack_gets_what_the_user_alone_gets(causal: bool) -> None:
    alone = packed([[4, 5, 6]], [0])
    mask = block_mask(alone.segment_ids, causal=causal)
    wanted = TinyAttention()(alone, mask)[alone.segment_ids == 1]
    found = outputs_of_b([1, 2, 3], lambda ids: block_mask(ids, causal=causal))
    torch.testing.assert_close(found, wanted)


def test_padding_gives_numbers_and_gradients_that_are_finite() -> None:
    batch = packed([[1, 2]], [0])
    model = TinyAttention()
    out = model(batch, block_mask(batch.segment_ids, causal=True))
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


# --- tensors


def test_pieces_lie_end_to_end_in_their_rows() -> None:
    batch = packed([[1, 2, 3], [4], [5, 6]], [0, 0, 1], padding_value=-1)
    assert isinstance(batch.values, Tensor)
    assert batch.values.tolist() == [[1, 2, 3, 4], [5, 6, -1, -1]]
    assert batch.positions.tolist() == [[0, 1, 2, 0], [0, 1, 0, 0]]
    assert batch.segment_ids.tolist() == [[1, 1, 1, 2], [1, 1, 0, 0]]
    assert batch.lengths.tolist() == [3, 1, 2]
    assert batch.piece_offsets.tolist() == [0, 2, 3]
    assert batch.rows == 2
    kinds = {t.dtype for t in (batch.positions, batch.segment_ids, batch.lengths, batch.piece_offsets)}
    assert kinds == {torch.int64}


def test_an_empty_history_is_a_piece_without_slots() -> None:
    batch = packed([[1, 2], [], [3], []], [0, 0, 0, 1])
    assert batch.segment_ids.tolist() == [[1, 1, 3, 0], [0, 0, 0, 0]]
    assert batch.positions.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert batch.lengths.tolist() == [2, 0, 1, 0]
    assert batch.piece_offsets.tolist() == [0, 3, 4]


def test_a_piece_of_a_split_history_counts_from_zero() -> None:
    history = [10, 11, 12, 13, 14]
    own = collate(SPLIT)
    batch = own([PieceSample(history, 0, 1, 5), PieceSample(history, 1, 0, 1)])
    assert isinstance(batch, PackedBatch)
    assert isinstance(batch.values, Tensor)
    assert batch.values.tolist() == [[11, 12, 13, 14], [10, 0, 0, 0]]
    assert batch.positions.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]


def test_the_width_is_rounded_up() -> None:
    batch = packed([[1, 2, 3]], [0], BatchPolicy("packed", capacity=3, length_multiple=8))
    assert batch.positions.shape == (1, 8)


def test_fields_are_cut_together_and_labels_stand_by_piece() -> None:
    samples = [
        {"items": np.array([1, 2]), "vector": np.ones((2, 3), np.float32), "label": 5},
        {"items": np.array([3]), "vector": np.zeros((1, 3), np.float32), "label": 6},
    ]
    batch = packed(samples, [0, 1])
    assert isinstance(batch.values, dict)
    assert batch.values["items"].tolist() == [[1, 2, 0, 0], [3, 0, 0, 0]]
    assert batch.values["vector"].shape == (2, 4, 3)
    assert batch.values["vector"][:, :, 0].tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
    assert batch.values["label"].tolist() == [5, 6]
    # the label of each event: piece s of row r is number piece_offsets[r] + s - 1
    number = batch.piece_offsets[:-1, None] + batch.segment_ids - 1
    assert batch.values["label"][number[batch.segment_ids > 0]].tolist() == [5, 5, 6]


# --- what is refused


def refused(error: type[LabkitError], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


def test_samples_that_are_no_pieces() -> None:
    with refused(ShapeError, "sample 0 of the batch is a list that does not say which pack it belongs to: wrap the"):
        collate(POLICY)([[1, 2]])
    with refused(PolicyError, "batch of 0 packs: no policy makes one."):
        collate(POLICY)([])


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([([1], 1, 0, 1)], "pieces must come pack by pack, from 0: got packs 1. Use BucketBatchSampler"),
        ([([1], 0, 0, 1), ([1], 2, 0, 1)], "pieces must come pack by pack, from 0: got packs 0, 2."),
        ([([1], 0, 0, 1), ([1], 1, 0, 1), ([1], 0, 0, 1)], "got packs 0, 1, 0."),
        ([([1], row, 0, 1) for row in range(3)], "batch of 3 packs, but packed makes at most rows 2"),
        ([([1] * 3, 0, 0, 3), ([1] * 2, 0, 0, 2)], "batch of 5 events in a pack, but packed makes at most capacity 4"),
        ([([1], 0, 0, 1)] * 4, "batch of 4 sequences in a pack, but packed makes at most max_sequences_per_pack 3"),
        ([([1], 0, 0, 2)], "sample 0 of the batch has 1 events, but events 0 .. 2 of it were planned: the sampler was"),
        ([([1, 2, 3], 0, 0, 2)], "sample 0 of the batch has 3 events, but events 0 .. 2 of it were planned"),
    ],
)
def test_batches_that_the_policy_does_not_make(pieces: list[Any], message: str) -> None:
    policy = BatchPolicy("packed", capacity=4, rows=2, max_sequences_per_pack=3)
    with refused(PolicyError, message):
        collate(policy)([PieceSample(*piece) for piece in pieces])


# --- the data set


class Counting:
    """A data set that says what was fetched."""

    def __init__(self) -> None:
        self.fetched: list[int] = []

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> list[int]:
        self.fetched.append(index)
        return [index] * 4


class Batched(Counting):
    def __getitems__(self, indices: list[int]) -> list[list[int]]:
        self.fetched.extend(indices)
        return [[index] * 4 for index in indices]


@pytest.mark.parametrize("kind", [Counting, Batched])
def test_a_sequence_in_several_pieces_is_fetched_once(kind: type[Counting]) -> None:
    data = kind()
    own = PackedDataset(data)
    found = own.__getitems__([PieceIndex(2, 0, 0, 2), PieceIndex(0, 0, 0, 4), PieceIndex(2, 1, 2, 4)])
    assert data.fetched == [2, 0]
    assert all(type(index) is int for index in data.fetched)
    assert found == [PieceSample([2] * 4, 0, 0, 2), PieceSample([0] * 4, 0, 0, 4), PieceSample([2] * 4, 1, 2, 4)]
    assert own[PieceIndex(1, 0, 0, 4)] == PieceSample([1] * 4, 0, 0, 4)
    assert len(own) == 3


def test_a_bare_index_is_refused() -> None:
    line = "PackedDataset takes the indices of BucketBatchSampler with a packed policy: got 1 (int)."
    with refused(ShapeError, line):
        PackedDataset(Counting())[1]  # type: ignore[index]
