"""Nothing leaks: not the future, not other users. And each test of that fails where the mask is switched off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from labkit.batching.strategies import Layout
from labkit.layouts.batch import Batch
from labkit.layouts.masks import Side, attention_mask, mha_mask, padded_on, sdpa_mask, valid_mask, zero_padding
from labkit.layouts.packed import PackedBatch, block_mask
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.models import causal_attention, fused
from labkit.models.base import RaggedModel
from labkit.models.causal_attention import window_mask
from labkit.models.gru4rec import Gru4Rec
from labkit.models.registry import MODELS, Model
from labkit.models.sasrec import SasRec
from tests.models.agreement import IDS, batch_of

LENGTHS = (6, 0, 9, 1, 4)
#: The row that is looked at, and the event of it that changes.
ROW, EVENT = 2, 4

CASES = [(model, layout) for model in (Model.SASREC, Model.GRU4REC) for layout in MODELS[model].takes]


def model_of(model: Model) -> RaggedModel:
    torch.manual_seed(0)
    return (SasRec(items=IDS, heads=2) if model is Model.SASREC else Gru4Rec(items=IDS, layers=2)).eval()


def slots_of(batch: Batch, row: int) -> tuple[Tensor, ...]:
    """Where the events of a row lie in the fields of a batch, first to last: an index."""
    steps = torch.arange(LENGTHS[row])
    if isinstance(batch, PaddedBatch):
        return torch.full_like(steps, row), batch.valid[row].nonzero()[:, 0]
    if isinstance(batch, PackedBatch):
        piece = int((batch.lengths == LENGTHS[row]).nonzero()[0])  # the lengths differ
        pack = int(torch.searchsorted(batch.piece_offsets, piece, right=True)) - 1
        own = batch.segment_ids[pack] == piece - batch.piece_offsets[pack] + 1
        return torch.full_like(steps, pack), own.nonzero()[:, 0]
    places = sum(LENGTHS[:row]) + steps
    return (batch.places[places] if isinstance(batch, PackedSequenceBatch) else places,)


def states_of(model: Any, batch: Batch, row: int) -> Tensor:
    """(n, D): the states after each event of a row."""
    states = model.states(batch)
    # states of a packed sequence come row by row
    start = sum(LENGTHS[:row])
    row_by_row = isinstance(batch, PackedSequenceBatch)
    own: Tensor = states[start : start + LENGTHS[row]] if row_by_row else states[slots_of(batch, row)]
    return own.detach()


def with_other_item(batch: Batch, row: int, event: int) -> Batch:
    """The batch with another item at one event."""
    assert isinstance(batch.values, dict)
    index = tuple(part[event] for part in slots_of(batch, row))
    items = batch.values["items"].clone()
    items[index] = (items[index] + 1) % IDS
    return batch._replace(values=batch.values | {"items": items})


def moved_by(model: Any, batch: Batch, changed: Batch, row: int) -> list[bool]:
    """Which states of a row differ in any bit."""
    return (states_of(model, batch, row) != states_of(model, changed, row)).any(1).tolist()  # type: ignore[no-any-return]


# --- C21: the future


@pytest.mark.parametrize(("model", "layout"), CASES, ids=str)
def test_an_item_changes_nothing_before_it_by_a_single_bit(model: Model, layout: Layout) -> None:
    batch = batch_of(model, layout, LENGTHS, wider=2)
    moved = moved_by(model_of(model), batch, with_other_item(batch, ROW, EVENT), ROW)
    assert moved == [event >= EVENT for event in range(LENGTHS[ROW])]


@pytest.mark.parametrize("event", range(6))
def test_nor_does_any_other_item_with_padding_on_the_left(event: int) -> None:
    torch.manual_seed(0)
    model = SasRec(items=IDS, padding="left").eval()
    batch = batch_of(Model.SASREC, Layout.PADDED, LENGTHS, wider=2)
    assert isinstance(batch, PaddedBatch)
    left = padded_on(batch, "left")
    assert moved_by(model, left, with_other_item(left, 0, event), 0) == [later >= event for later in range(6)]


@pytest.mark.parametrize(("model", "layout"), CASES, ids=str)
def test_the_future_leaks_where_the_causal_part_is_off(
    model: Model, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = model_of(model)
    if isinstance(own, Gru4Rec):
        own.gru = nn.GRU(32, 16, 2, batch_first=True, bidirectional=True)
    else:
        monkeypatch.setattr(causal_attention, "block_mask", lambda ids, causal: block_mask(ids, causal=False))
        monkeypatch.setattr(causal_attention, "window_mask", lambda *of, causal: window_mask(*of, causal=False))
        monkeypatch.setattr(
            fused,
            "scaled_dot_product_attention",
            lambda q, k, v, attn_mask, is_causal: scaled_dot_product_attention(q, k, v, attn_mask=attn_mask),
        )
    batch = batch_of(model, layout, LENGTHS, wider=2)
    moved = moved_by(own, batch, with_other_item(batch, ROW, EVENT), ROW)
    # the windows of a jagged batch end where they end: there not every earlier event sees it
    assert any(moved[:EVENT]) if layout is Layout.JAGGED else moved == [True] * LENGTHS[ROW]


@pytest.mark.parametrize("model", [Model.SASREC, Model.GRU4REC])
def test_a_history_cut_short_has_the_states_that_it_had(model: Model) -> None:
    # that more events follow, and how many, is the future too; the layouts agree, so one of them will do
    own, whole = model_of(model), batch_of(model, Layout.PADDED, (6,))
    assert isinstance(whole, PaddedBatch)
    assert isinstance(whole.values, dict)
    first = {name: field[:, :4] for name, field in whole.values.items()}
    short = PaddedBatch(first, torch.tensor([4]), whole.valid[:, :4], 1)
    torch.testing.assert_close(own.states(short)[0], own.states(whole)[0, :4], rtol=1e-5, atol=1e-6)  # type: ignore[operator]


# --- C15: other users


@pytest.mark.parametrize(("model", "layout"), CASES, ids=str)
def test_other_users_do_not_change_by_a_single_bit(model: Model, layout: Layout) -> None:
    own, batch = model_of(model), batch_of(model, layout, LENGTHS, wider=2)
    for event in range(LENGTHS[ROW]):
        changed = with_other_item(batch, ROW, event)
        assert not any(any(moved_by(own, batch, changed, row)) for row in range(len(LENGTHS)) if row != ROW)


def test_packed_users_see_one_another_where_the_blocks_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_block(segment_ids: Tensor, causal: bool) -> Tensor:
        return block_mask(torch.ones_like(segment_ids), causal=causal)

    own, batch = model_of(Model.SASREC), batch_of(Model.SASREC, Layout.PACKED_ROWS, (3, 2), wider=2)
    assert isinstance(batch, PackedBatch)
    assert batch.segment_ids.tolist() == [[1, 1, 1, 2, 2]]
    assert isinstance(batch.values, dict)
    items = batch.values["items"].clone()
    items[0, 0] = (items[0, 0] + 1) % IDS
    changed = batch._replace(values=batch.values | {"items": items})

    def moved() -> list[bool]:
        return (own.states(batch) != own.states(changed)).any(-1)[0].tolist()  # type: ignore[operator]

    assert moved() == [True, True, True, False, False]
    monkeypatch.setattr(causal_attention, "block_mask", one_block)
    assert moved() == [True] * 5


def test_jagged_users_see_one_another_where_windows_do_not_tell_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    own, batch = model_of(Model.SASREC), batch_of(Model.SASREC, Layout.JAGGED, LENGTHS)
    changed = with_other_item(batch, ROW, EVENT)
    assert not any(moved_by(own, batch, changed, 4))
    monkeypatch.setattr(
        causal_attention, "window_mask", lambda ids, width, causal: window_mask(ids * 0, width, causal=causal)
    )
    assert any(moved_by(own, batch, changed, 4))


# --- C19: causal and padding at once, on both sides, through both APIs


def by_sdpa(x: Tensor, allowed: Tensor, module: nn.MultiheadAttention) -> Tensor:
    return scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=sdpa_mask(allowed))[:, 0]


def by_mha(x: Tensor, allowed: Tensor, module: nn.MultiheadAttention) -> Tensor:
    return module(x, x, x, attn_mask=mha_mask(allowed, 2), need_weights=False)[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("attend", [by_sdpa, by_mha])
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("causal", [True, False])
def test_what_moves_a_query_is_what_its_mask_allows(
    attend: Callable[[Tensor, Tensor, nn.MultiheadAttention], Tensor], side: Side, causal: bool
) -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    valid = valid_mask(torch.tensor([2, 4, 0]), 4, side)
    allowed = attention_mask(valid, causal=causal)
    x = torch.randn(3, 4, 8)
    look = partial(attend, allowed=allowed, module=module)
    before = zero_padding(look(x), valid)
    assert before.isfinite().all()
    assert before[2].eq(0).all()
    for key in range(4):
        other = x.clone()
        other[:, key] += 1
        moved = (zero_padding(look(other), valid) != before).any(-1)
        expected = allowed[:, :, key].clone()
        expected[:, key] |= True if attend is by_mha else allowed[:, key, key]  # as a query, an event moves itself
        assert moved.tolist() == (expected & valid).tolist(), key
    if causal:
        # allowed keys of each query, arithmetic of C19
        counts = {Side.LEFT: [[0, 0, 1, 2], [1, 2, 3, 4], [0] * 4], Side.RIGHT: [[1, 2, 2, 2], [1, 2, 3, 4], [0] * 4]}
        assert allowed.sum(-1).tolist() == counts[side]
