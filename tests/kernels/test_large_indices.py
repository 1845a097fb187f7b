"""Indices above 2**31: memory of which only the last rows are touched, so that it costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from labkit.gpu.host.buffers import SparseBuffer
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.regimes import BLOCK
from tests.kernels.cpu_device import program_of

DIM = 64
FIRST = 2**31 // DIM + 5  # the event with which the only rows begin: its first element is above 2**31
OFFSETS = np.array([FIRST, FIRST + 3, FIRST + 8])
BINS = bin_rows(torch.tensor([0, 3, 8]), 0, (1, 4, 100)).numpy()  # one by a warp, one by a block
SIZES = (np.int32(2), np.int32(DIM // 4), np.int32(0), np.int32(100))
EVENTS = np.random.default_rng(0).standard_normal((8, DIM)).astype(np.float32)


@pytest.fixture
def values() -> Iterator[SparseBuffer]:
    """(T, D) zeros, but for the eight events of the two rows."""
    with SparseBuffer((FIRST + 8, DIM), np.float32) as buffer:
        buffer.array[FIRST:] = EVENTS
        yield buffer


@pytest.fixture
def empty() -> Iterator[SparseBuffer]:
    with SparseBuffer((FIRST + 8, DIM), np.float32) as buffer:
        yield buffer


def launch(op: str, expression: str, arguments: Sequence[object], blocks: int = 2) -> None:
    run = program_of(op, expression, Mode.FAST).launch(expression, (blocks,), (BLOCK,), arguments)  # type: ignore[arg-type]
    assert run.clean, run.reports


def pooled(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.stack([values[:3].sum(0), values[3:].sum(0)])


def test_segment_sum(values: SparseBuffer) -> None:
    out, none = np.full((2, DIM), np.nan, np.float32), np.zeros(1, np.float32)
    launch("segment_pool", "segment_sum<float, 4>", (out, none, values, OFFSETS, BINS, *SIZES, np.int32(0)))
    np.testing.assert_allclose(out, pooled(EVENTS), rtol=1e-5, atol=1e-6)


def test_segment_sum_backward(empty: SparseBuffer) -> None:
    grad = EVENTS[:2].copy()
    launch("segment_pool", "segment_sum_backward<float, 4>", (empty, grad, OFFSETS, BINS, *SIZES, np.int32(0)))
    np.testing.assert_array_equal(empty.array[FIRST:], np.repeat(grad, [3, 5], axis=0))


def test_segment_max(values: SparseBuffer, empty: SparseBuffer) -> None:
    out, at, none = np.full((2, DIM), np.nan, np.float32), np.zeros((2, DIM), np.int32), np.zeros(1, np.float32)
    launch("segment_pool", "segment_max<float, 4>", (out, at, none, values, OFFSETS, BINS, *SIZES))
    np.testing.assert_array_equal(out, [EVENTS[:3].max(0), EVENTS[3:].max(0)])
    grad = np.ones((2, DIM), np.float32)
    launch("segment_pool", "segment_max_backward<float, 4>", (empty, grad, at, OFFSETS, BINS, *SIZES))
    assert empty.array[FIRST:].sum() == 2 * DIM


def test_embedding_pool_of_a_large_table(values: SparseBuffer) -> None:
    ids, none = np.arange(8) + FIRST, np.zeros(1, np.float32)
    out, sizes = np.full((2, DIM), np.nan, np.float32), (np.int64(FIRST + 8), *SIZES, np.int32(0))
    offsets = np.array([0, 3, 8])
    arguments = (out, none, values, ids, None, offsets, BINS, *sizes)
    launch("embedding_pool", "embedding_pool<float, 4, false>", arguments)
    np.testing.assert_allclose(out, pooled(EVENTS), rtol=1e-5, atol=1e-6)
    weights, grad = np.full(8, np.nan, np.float32), np.ones((2, DIM), np.float32)
    arguments = (weights, grad, values, ids, offsets, BINS, *sizes)
    launch("embedding_pool", "embedding_pool_weight_grad<float, 4>", arguments)
    np.testing.assert_allclose(weights, EVENTS.sum(1), rtol=1e-4, atol=1e-5)


def test_attention(values: SparseBuffer, empty: SparseBuffer) -> None:
    out, top, total = (np.full(shape, np.nan, np.float32) for shape in ((2, DIM), 2, 2))
    none = np.zeros(1, np.float32)
    with SparseBuffer(FIRST + 8, np.float32) as scores, SparseBuffer(FIRST + 8, np.float32) as grads:
        arguments = (out, top, total, none, scores, values, OFFSETS, BINS, *SIZES)
        launch("din_attention", "attention_pool<float, 4>", arguments)
        np.testing.assert_allclose(out, [EVENTS[:3].mean(0), EVENTS[3:].mean(0)], rtol=1e-5, atol=1e-6)
        grad = np.ones((2, DIM), np.float32)
        arguments = (grads, empty, grad, out, top, total, scores, values, OFFSETS, BINS, *SIZES)
        launch("din_attention", "attention_pool_backward<float, 4>", arguments)
    np.testing.assert_allclose(empty.array[FIRST:, 0], [1 / 3] * 3 + [1 / 5] * 5, rtol=1e-5)


def test_the_copies() -> None:
    padded, fill = np.full((2, 4, DIM), np.nan, np.float32), np.uint64(0)
    sizes = (np.int32(2), np.int32(4), np.int32(DIM // 4))
    with SparseBuffer((FIRST + 8, DIM), np.uint32) as units:
        units.array[FIRST:] = EVENTS.view(np.uint32)
        arguments = (padded.view(np.uint32), units, OFFSETS, fill, *sizes)
        launch("jagged_to_padded", "jagged_to_padded<uint4, unsigned>", arguments)
    np.testing.assert_array_equal(padded[0, :3], EVENTS[:3])
    np.testing.assert_array_equal(padded[1], EVENTS[4:])
    with SparseBuffer((FIRST + 8, DIM), np.uint32) as back:
        arguments = (back, padded.view(np.uint32), OFFSETS, fill, *sizes)
        launch("padded_to_jagged", "padded_to_jagged<uint4, unsigned>", arguments)
        found = back.array[FIRST:].view(np.float32).copy()
    np.testing.assert_array_equal(found[[0, 1, 2, 4, 5, 6, 7]], EVENTS[[0, 1, 2, 4, 5, 6, 7]])
    assert (found[3] == 0).all()  # has no slot
