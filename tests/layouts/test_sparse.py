"""The sparse layout: counts of ids as a matrix that torch accepts, and its product with a gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from labkit.batching.policy import BatchPolicy
from labkit.errors import ShapeError
from labkit.layouts.collate import collate
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.segments import segment_max, segment_mean, segment_sum
from labkit.layouts.sparse import CountMatrix, SparseBatch, count_matrix, sparse_batch
from labkit.layouts.spmm import spmm


def dense_of(matrix: CountMatrix, columns: int) -> torch.Tensor:
    """The matrix by torch's own CSR and COO, which check that it is one."""
    rows = matrix.row_offsets.shape[0] - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        csr = torch.sparse_csr_tensor(*matrix[:3], size=(rows, columns), check_invariants=True)
    index = torch.stack([matrix.row_ids, matrix.columns])
    coo = torch.sparse_coo_tensor(index, matrix.counts, (rows, columns), is_coalesced=True, check_invariants=True)
    torch.testing.assert_close(csr.to_dense(), coo.to_dense())
    return coo.to_dense()


def test_repeated_items_are_one_entry_and_the_length_stays() -> None:
    # user 0 has items 5 5 7, user 1 none, user 2 item 5: COO alone would say that user 0 has two events
    batch = collate(BatchPolicy("sparse", token_budget=10))([[5, 5, 7], [], [5]])
    assert isinstance(batch, SparseBatch)
    assert isinstance(batch.counts, CountMatrix)
    assert batch.offsets.diff().tolist() == [3, 0, 1]
    assert batch.row_ids.tolist() == [0, 0, 0, 2]
    assert batch.counts.row_offsets.tolist() == [0, 2, 2, 3]
    assert batch.counts.columns.tolist() == [5, 7, 5]
    assert batch.counts.counts.tolist() == [2, 1, 1]
    assert batch.counts.row_ids.tolist() == [0, 0, 2]
    assert dense_of(batch.counts, 8).sum(1).tolist() == [3, 0, 1]


@given(st.lists(st.lists(st.integers(0, 6), max_size=8), max_size=6))
def test_counts_are_those_of_each_row(rows: list[list[int]]) -> None:
    ids = torch.tensor([i for row in rows for i in row], dtype=torch.int64)
    offsets = torch.tensor(np.cumsum([0, *map(len, rows)]))
    expected = torch.tensor([[float(row.count(i)) for i in range(7)] for row in rows]).view(len(rows), 7)
    torch.testing.assert_close(dense_of(count_matrix(ids, offsets), 7), expected)


def test_fields_that_hold_no_ids_are_not_counted() -> None:
    samples: list[Any] = [
        {"items": [0, 5, 0], "shift": [-1, 0, 1], "price": [0.5, 1.0, 1.5], "label": 1.0},
        {"items": [2], "shift": [0], "price": [2.0], "label": 0.0},
    ]
    batch = collate(BatchPolicy("sparse", token_budget=10))(samples)
    assert isinstance(batch.counts, dict)
    assert list(batch.counts) == ["items"]
    assert batch.counts["items"].counts.tolist() == [2, 1, 1]  # the id 0 is an item like any other
    assert batch.values["label"].tolist() == [1.0, 0.0]


def test_what_cannot_be_counted_is_refused() -> None:
    offsets = torch.tensor([0, 1])
    with pytest.raises(ShapeError, match=r"ids must be 0 or more: got -1\. Remap"):
        count_matrix(torch.tensor([-1]), offsets)
    with pytest.raises(ShapeError, match=r"counts need \(T,\) integer ids: got shape \(1,\), torch.float32."):
        count_matrix(torch.tensor([1.0]), offsets)
    with pytest.raises(
        ShapeError, match="sequences= must name the fields with one entry an event: the batch has items"
    ):
        sparse_batch(JaggedBatch({"items": torch.tensor([1])}, offsets, 1))


# --- the product


def arguments(rows: int, columns: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    random = np.random.default_rng(seed)
    ids = torch.from_numpy(random.integers(columns, size=4 * rows))
    offsets = torch.from_numpy(np.sort(np.append(random.integers(4 * rows + 1, size=rows - 1), [0, 4 * rows])))
    matrix = count_matrix(ids, offsets)
    dense = torch.from_numpy(random.standard_normal((columns, 3)))
    return matrix.counts.double(), matrix.row_offsets, matrix.columns, matrix.row_ids, dense


def test_the_product_and_its_gradients_are_those_of_the_dense_matrix() -> None:
    weights, offsets, columns, ids, dense = arguments(6, 5)
    weights.requires_grad_()
    dense.requires_grad_()
    matrix = torch.zeros(6, 5, dtype=torch.float64).index_put((ids, columns), weights)
    torch.testing.assert_close(spmm(weights, offsets, columns, ids, dense), matrix @ dense)
    assert torch.autograd.gradcheck(lambda w, d: spmm(w, offsets, columns, ids, d), (weights, dense))
    torch.library.opcheck(spmm, (weights, offsets, columns, ids, dense))


def test_a_column_that_is_not_there_is_refused() -> None:
    weights, offsets, columns, ids, dense = arguments(6, 5)
    with pytest.raises(ShapeError, match="columns must be below 3, the rows of the dense matrix: got 4"):
        spmm(weights, offsets, columns, ids, dense[:3])


def test_empty_products_are_zeros() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    dense = torch.randn(4, 3, requires_grad=True)
    out = spmm(torch.zeros(0), torch.zeros(3, dtype=torch.int64), none, none, dense)
    assert out.tolist() == [[0, 0, 0], [0, 0, 0]]
    out.sum().backward()
    assert dense.grad is not None
    assert dense.grad.abs().max() == 0
    assert spmm(torch.zeros(0), torch.zeros(1, dtype=torch.int64), none, none, dense).shape == (0, 3)


def test_the_product_counts_its_flops_and_stays_in_float32_under_autocast() -> None:
    weights, offsets, columns, ids, dense = arguments(6, 5)
    with FlopCounterMode(display=False) as flops:
        spmm(weights, offsets, columns, ids, dense)
    assert flops.get_total_flops() == 2 * len(weights) * 3
    with torch.autocast("cpu", torch.bfloat16):
        out = spmm(weights.bfloat16(), offsets, columns, ids, dense.bfloat16())
    assert out.dtype == torch.float32


# --- sums of segments


def test_segments_without_events_are_zeros() -> None:
    values, ids = torch.tensor([[-1.0, 2.0], [-3.0, 1.0], [-5.0, 0.0]]), torch.tensor([0, 0, 2])
    assert segment_sum(values, ids, 4).tolist() == [[-4, 3], [0, 0], [-5, 0], [0, 0]]
    assert segment_mean(values, ids, torch.tensor([2, 0, 1, 0])).tolist() == [[-2, 1.5], [0, 0], [-5, 0], [0, 0]]
    assert segment_max(values, ids, 4).tolist() == [[-1, 2], [0, 0], [-5, 0], [0, 0]]
