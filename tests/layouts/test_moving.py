"""Batches of every layout move as a whole, and are padded where they arrive."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout
from labkit.errors import PolicyError
from labkit.layouts.collate import collate
from labkit.layouts.device_padding import pad_on_device
from labkit.layouts.moving import batch_bytes, to_device
from labkit.layouts.padded import PaddedBatch
from labkit.models.inputs import example_batch
from labkit.models.registry import MODELS, Model

BUCKETS = BatchPolicy("bucket_rows", rows=8, bucket_edges=(4, 8), max_length=6)


def tensors(part: Any) -> list[torch.Tensor]:
    """All tensors of a batch, found without the code under test."""
    if isinstance(part, torch.Tensor):
        return [part]
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else ()
    return [tensor for value in inside for tensor in tensors(value)]


@pytest.mark.parametrize("layout", list(Layout), ids=str)
def test_every_tensor_moves_and_nothing_else_changes(layout: Layout) -> None:
    spec = MODELS[Model.GRU4REC if layout is Layout.PACKED_SEQUENCE else Model.CTR]
    batch = example_batch(spec, layout, [3, 0, 2])
    moved = to_device(batch, "meta")
    assert type(moved) is type(batch)
    assert moved.rows == batch.rows
    own, there = tensors(batch), tensors(moved)
    stay = 1 if layout is Layout.PACKED_SEQUENCE else 0  # its batch sizes, which torch reads on the host
    assert [t.device.type for t in there].count("cpu") == stay
    assert [(t.shape, t.dtype) for t in own] == [(t.shape, t.dtype) for t in there]
    crossing = [t for t, there_ in zip(own, there, strict=True) if there_.device.type == "meta"]
    assert batch_bytes(batch) == sum(t.numel() * t.element_size() for t in crossing)


def test_bytes_of_a_small_batch() -> None:
    # values 3 x 8, offsets 3 x 8
    batch = collate(BatchPolicy("jagged", token_budget=9))([[1, 2], [3]])
    assert batch_bytes(batch) == 48


# --- padding on the device


def equal(one: PaddedBatch, other: PaddedBatch) -> None:
    for a, b in zip(tensors(one), tensors(other), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert one.rows == other.rows


@pytest.mark.parametrize(
    "policy",
    [BUCKETS, BatchPolicy("pad_batch", rows=8), BatchPolicy("bucket_graph", token_budget=24, bucket_edges=(4,))],
    ids=lambda policy: policy.strategy,
)
@given(rows=st.lists(st.integers(0, 4), min_size=1, max_size=6), vectors=st.booleans())
def test_padding_on_the_device_is_padding_on_the_host_bit_for_bit(
    policy: BatchPolicy, rows: list[int], vectors: bool
) -> None:
    own = collate(policy, histogram=[4] * 12, padding_value=7, sequences=["items", "x"])
    shape = (2,) if vectors else ()
    samples = [{"items": torch.arange(n), "x": torch.randn(n, *shape), "label": float(i)} for i, n in enumerate(rows)]
    unpadded = pad_on_device(own)(samples)
    equal(unpadded.padded(), own(samples))
    assert unpadded.padded().values["items"].shape == own(samples).values["items"].shape


def test_only_events_travel_and_the_shape_is_the_planned_one() -> None:
    own = pad_on_device(collate(BUCKETS))
    unpadded = own([torch.arange(9), torch.arange(5)])  # capped to 6, in the bucket up to 6
    assert (unpadded.values.tolist(), unpadded.width) == ([3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4], 6)
    assert batch_bytes(unpadded) == 8 * (11 + 3)
    moved = to_device(unpadded, "meta")
    assert moved.padded().values.shape == (2, 6)
    assert (moved.sequences, moved.rows) == (None, 2)


def test_the_collate_can_be_sent_to_workers() -> None:
    own = pickle.loads(pickle.dumps(pad_on_device(collate(BUCKETS))))
    assert own([torch.arange(2)]).padded().values.tolist() == [[0, 1, 0, 0]]
    assert own.policy == BUCKETS


def test_layouts_without_padding_are_refused() -> None:
    with pytest.raises(PolicyError, match="needs a collate of the padded layout: got jagged, which it leaves as it is"):
        pad_on_device(collate(BatchPolicy("jagged", token_budget=9)))
    with pytest.raises(PolicyError, match="got packed_rows"):
        pad_on_device(collate(BatchPolicy("packed", capacity=9)))
