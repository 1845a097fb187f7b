"""What follows what, and where rows end, in every layout."""

from __future__ import annotations

import pytest
import torch

from labkit.errors import ShapeError
from labkit.layouts.history_order import ends_of, follows, last_events
from labkit.layouts.jagged_batch import JaggedBatch, longest_row
from labkit.layouts.masks import Side, padded_on
from labkit.layouts.packed import PackedBatch
from labkit.layouts.packed_rnn import pack_jagged
from labkit.layouts.padded import PaddedBatch, valid_slots

# rows a b | (empty) | d e f
EVENTS = torch.tensor([1.0, 2, 4, 5, 6])
LENGTHS = torch.tensor([2, 0, 3])


def padded() -> PaddedBatch:
    valid = valid_slots(LENGTHS, 4)
    return PaddedBatch(torch.full((3, 4), 9.0).masked_scatter(valid, EVENTS), LENGTHS, valid, 3)


def jagged() -> JaggedBatch:
    return JaggedBatch(EVENTS, ends_of(LENGTHS), 3, 3)


def packed() -> PackedBatch:
    # packs: d e f and an empty piece | a b
    return PackedBatch(
        torch.tensor([[4.0, 5, 6], [1, 2, 9]]),
        torch.tensor([[0, 1, 2], [0, 1, 0]]),
        torch.tensor([[1, 1, 1], [1, 1, 0]]),
        torch.tensor([3, 0, 2]),
        torch.tensor([0, 2, 3]),
        2,
    )


def test_what_follows_in_the_same_history() -> None:
    assert follows(padded(), 3).int().tolist() == [[1, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert follows(padded_on(padded(), "left"), 3).int().tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 1]]
    assert follows(jagged(), 5).int().tolist() == [1, 0, 1, 1]
    assert follows(pack_jagged(EVENTS, LENGTHS), 5).int().tolist() == [1, 0, 1, 1]
    assert follows(packed(), 2).int().tolist() == [[1, 1], [1, 0]]


def test_two_users_in_one_pack_do_not_follow_one_another() -> None:
    segments = torch.tensor([[1, 1, 2, 0, 0]])
    batch = PackedBatch(torch.zeros(1, 5), segments, segments, torch.tensor([2, 1]), torch.tensor([0, 2]), 1)
    assert follows(batch, 1).int().tolist() == [[1, 0, 0, 0]]


def test_the_last_event_of_each_row_and_zero_where_there_is_none() -> None:
    for batch in (padded(), jagged()):
        assert isinstance(batch.values, torch.Tensor)
        assert last_events(batch.values[..., None], batch).tolist() == [[2], [0], [6]]
    left = padded_on(padded(), "left")
    assert isinstance(left.values, torch.Tensor)
    assert last_events(left.values[..., None], left, Side.LEFT).tolist() == [[2], [0], [6]]
    pieces = packed()
    assert isinstance(pieces.values, torch.Tensor)
    assert last_events(pieces.values[..., None], pieces).tolist() == [[6], [0], [2]]


def test_rows_without_any_event_have_zeros_and_a_gradient() -> None:
    values = torch.zeros(0, 2, requires_grad=True)
    last = last_events(values, JaggedBatch(values, torch.zeros(4, dtype=torch.int64), 3))
    assert last.tolist() == [[0, 0]] * 3
    last.sum().backward()
    assert values.grad is not None


def test_padding_never_reaches_an_empty_row() -> None:
    values = torch.full((3, 4, 1), torch.nan)
    assert last_events(values, padded()).isnan()[:, 0].tolist() == [True, False, True]


def test_the_longest_row_is_carried_or_counted_on_the_host() -> None:
    assert longest_row(jagged()) == longest_row(jagged()._replace(longest=None)) == 3
    assert longest_row(JaggedBatch(EVENTS[:0], torch.zeros(2, dtype=torch.int64), 1)) == 1
    moved = jagged()._replace(offsets=torch.zeros(4, dtype=torch.int64, device="meta"))
    assert longest_row(moved) == 3
    message = r"^the longest row of a jagged batch on meta is not known: set JaggedBatch\.longest before the batch is"
    with pytest.raises(ShapeError, match=message):
        longest_row(moved._replace(longest=None))
