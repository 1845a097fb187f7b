"""Pooling: sum, mean and maximum in every layout, empty bags that are zeros, and no bags at all."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from labkit.batching.strategies import Layout
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.packed_rnn import pack_jagged
from labkit.layouts.sparse import SparseBatch, sparse_batch
from labkit.models.pooling import Pooling, bags, pool
from labkit.models.registry import Model
from tests.models.agreement import IDS, RAGGED, batch_of, by_rows

TABLE = torch.arange(10.0).view(5, 2)
EMPTY_AMONG = torch.tensor([0, 1, 1, 3, 3, 4, 5])


def test_empty_bags_are_zeros_in_the_mean() -> None:
    found = bags(TABLE, torch.arange(5), EMPTY_AMONG, Pooling.MEAN)
    assert found.tolist() == [[0, 1], [0, 0], [3, 4], [0, 0], [6, 7], [8, 9]]


@pytest.mark.parametrize(
    ("pooling", "expected"), [(Pooling.SUM, [6, 8]), (Pooling.MEAN, [3, 4]), (Pooling.MAX, [4, 5])], ids=str
)
def test_empty_bags_are_zeros_however_pooled(pooling: Pooling, expected: list[float]) -> None:
    found = bags(TABLE - 20, torch.arange(5), EMPTY_AMONG, pooling)
    assert found[1].tolist() == found[3].tolist() == [0, 0]
    # events 1 and 2, with embeddings 2 3 and 4 5
    assert bags(TABLE, torch.arange(5), EMPTY_AMONG, pooling)[2].tolist() == expected


@pytest.mark.parametrize("pooling", list(Pooling), ids=str)
def test_zero_bags_never_reach_torch(pooling: Pooling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "embedding_bag", None)  # calling it would raise
    none = torch.zeros(0, dtype=torch.int64)
    assert bags(TABLE, none, torch.tensor([0]), pooling).shape == (0, 2)
    with pytest.raises(TypeError):
        bags(TABLE, none, torch.tensor([0, 0]), pooling)


@pytest.mark.parametrize("layout", [Layout.JAGGED, Layout.SEGMENTED, Layout.PACKED_ROWS, Layout.SPARSE], ids=str)
@pytest.mark.parametrize("pooling", list(Pooling), ids=str)
def test_layouts_agree_on_values_and_gradients(layout: Layout, pooling: Pooling) -> None:
    if (layout, pooling) == (Layout.SPARSE, Pooling.MAX):
        with pytest.raises(PolicyError, match="a sparse matrix product adds, it has no maximum"):
            pool(TABLE, batch_of(Model.POOLED, layout), "items", pooling)
        return
    torch.manual_seed(0)
    table = torch.randn(IDS, 4, requires_grad=True)
    weight = torch.randn(len(RAGGED), 4)
    found = []
    for own in (Layout.PADDED, layout):
        pooled = by_rows(pool(table, batch_of(Model.POOLED, own), "items", pooling), own, RAGGED)
        found.append((pooled, torch.autograd.grad((pooled * weight).sum(), table)[0]))
    for mine, other in zip(*found, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)
    assert found[0][0][1].abs().max() == 0  # row 1 is empty


def test_a_repeated_item_counts_as_often_as_it_is_there() -> None:
    jagged = JaggedBatch({"items": torch.tensor([4, 4, 1])}, torch.tensor([0, 3]), 1)
    sparse = sparse_batch(jagged, ("items",))
    for batch in (jagged, sparse):
        assert pool(TABLE, batch, "items", Pooling.SUM).tolist() == [[18, 21]]  # 8 9 + 8 9 + 2 3
        assert pool(TABLE, batch, "items", Pooling.MEAN).tolist() == [[6, 7]]


def test_what_cannot_be_pooled_is_refused() -> None:
    jagged = JaggedBatch({"items": torch.tensor([1])}, torch.tensor([0, 1]), 1)
    with pytest.raises(ShapeError, match="the batch has no field 'shops': got items"):
        pool(TABLE, jagged, "shops", Pooling.SUM)
    bare = SparseBatch(torch.tensor([1]), torch.tensor([0, 1]), torch.tensor([0]), None, 1)
    with pytest.raises(ShapeError, match="the batch has no counts of 'items'"):
        pool(TABLE, bare, "items", Pooling.SUM)
    with pytest.raises(PolicyError, match="pool does not take a PackedSequenceBatch"):
        pool(TABLE, pack_jagged(torch.tensor([1]), torch.tensor([1])), "items", Pooling.SUM)
