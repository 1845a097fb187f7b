"""A batch as columns gives, in every layout, the tensors or the error that its samples give one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labkit.batching.pieces import PieceIndex, batch_indices
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout, Strategy
from labkit.errors import LabkitError, PolicyError
from labkit.jagged import Jagged
from labkit.layouts import columns
from labkit.layouts.collate import collate
from labkit.layouts.columns import LONG_ROW, RaggedColumns
from labkit.layouts.device_padding import pad_on_device
from labkit.layouts.packed import PackedDataset
from labkit.layouts.pieces import Pieces
from labkit.layouts.ragged_dataset import RaggedDataset
from tests.batching.draws import policies

DTYPES = ("int64", "int32", "int16", "uint8", "float32", "float64", "bool", "bfloat16")
LAYOUTS = (None, "jagged", "on the device")


def assert_same(own: Any, other: Any) -> None:
    """Equal to the last bit: types, names, dtypes, shapes and values."""
    assert type(own) is type(other)
    if isinstance(own, torch.Tensor):
        assert own.dtype == other.dtype
        assert own.shape == other.shape
        assert torch.equal(own, other)
    elif isinstance(own, dict):
        assert list(own) == list(other)
        assert_same(tuple(own.values()), tuple(other.values()))
    elif isinstance(own, tuple):
        assert len(own) == len(other)
        for mine, theirs in zip(own, other, strict=True):
            assert_same(mine, theirs)
    else:
        assert own == other


def outcome(make: Callable[[], Any]) -> Any:
    """What comes out, or what is refused and how."""
    try:
        return make()
    except LabkitError as error:
        return type(error).__name__, str(error)


def values(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> Any:
    """Any values of that dtype, as an array or a tensor; NumPy lacks bfloat16."""
    found = np.random.default_rng(draw(st.integers(0, 3))).integers(0, 100, shape)
    if dtype == "bfloat16":
        return torch.from_numpy(found).to(torch.bfloat16)
    own = found.astype(dtype)
    return torch.from_numpy(own) if draw(st.booleans()) else own


@st.composite
def fields(draw: st.DrawFn, lengths: list[int]) -> Any:
    """One jagged field, or named ones: ids, vectors and fields of a fixed size."""

    def jagged(*tail: int, dtype: str) -> Jagged:
        return Jagged.from_lengths(values(draw, (sum(lengths), *tail), dtype), lengths)

    dtype = draw(st.sampled_from(DTYPES))
    if draw(st.booleans()):
        return jagged(*draw(st.sampled_from([(), (2,)])), dtype=dtype)
    return {
        "label": values(draw, (len(lengths),), draw(st.sampled_from(DTYPES))),
        "items": jagged(dtype=dtype),
        "profile": values(draw, (len(lengths), 2), "float32"),
        "vectors": jagged(draw(st.integers(0, 3)), dtype="float32"),
    }


def one_by_one(given_fields: Any, lengths: list[int]) -> list[Any]:
    """The same samples, each with its own arrays."""
    if isinstance(given_fields, Jagged):
        return list(given_fields)
    # sequences first, as a RaggedDataset has them: the order of fields in a batch is that of its samples
    order = sorted(given_fields, key=lambda name: not isinstance(given_fields[name], Jagged))
    return [{name: given_fields[name][i] for name in order} for i in range(len(lengths))]


def made(policy: BatchPolicy, layout: str | None, **options: Any) -> Any:
    """The collate of a policy in a layout, where it can have it."""
    if layout == "on the device":
        assume(policy.spec.layout is Layout.PADDED)
        return pad_on_device(collate(policy, **options))
    assume(policy.strategy is not Strategy.PACKED or layout is None)
    return collate(policy, layout, **options)


def both_data_sets(policy: BatchPolicy, given_fields: Any, lengths: list[int]) -> tuple[Any, Any]:
    whole, rows = RaggedDataset(given_fields), one_by_one(given_fields, lengths)
    if policy.strategy is Strategy.PACKED:
        return PackedDataset(whole), PackedDataset(rows)
    return whole, rows


def fetched(data: Any, indices: Sequence[int]) -> Any:
    """As DataLoader fetches a batch."""
    many = getattr(data, "__getitems__", None)
    return many(indices) if many else [data[index] for index in indices]


def long_from(events: int) -> Any:
    """Rows of so many events on average count as long, and are copied in another way."""
    return mock.patch.object(columns, "LONG_ROW", events)


@settings(max_examples=300)
@given(st.data(), st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_every_batch_of_any_plan(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths))
    given_fields = data.draw(fields(lengths))
    names = None if isinstance(given_fields, Jagged) else ("items", "vectors")
    padding = data.draw(st.sampled_from([0, 1, -1, 0.5]))
    own = made(policy, data.draw(st.sampled_from(LAYOUTS)), histogram=lengths, padding_value=padding, sequences=names)
    whole, rows = both_data_sets(policy, given_fields, lengths)
    plan = plan_epoch(lengths, policy, seed=data.draw(st.integers(0, 3)))
    for i in range(len(plan)):
        indices = batch_indices(plan, i)
        batch = fetched(whole, indices)
        assert isinstance(batch, RaggedColumns | Pieces)
        with long_from(data.draw(st.sampled_from([1, LONG_ROW]))):
            assert_same(outcome(lambda: own(batch)), outcome(lambda: own(fetched(rows, indices))))  # noqa: B023


@settings(max_examples=300)
@given(st.data(), st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_any_indices_even_those_of_no_batch(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths))
    given_fields = data.draw(fields(lengths))
    names = None if isinstance(given_fields, Jagged) else ("items", "vectors")
    own = made(policy, data.draw(st.sampled_from(LAYOUTS)), histogram=lengths, sequences=names)
    whole, rows = both_data_sets(policy, given_fields, lengths)
    indices = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=9))
    if policy.strategy is Strategy.PACKED:
        small = st.integers(0, 9)
        indices = [PieceIndex(i, *data.draw(st.tuples(st.integers(0, 2), small, small))) for i in indices]
        assume(all(piece.start <= piece.stop for piece in indices))
    assert_same(outcome(lambda: own(fetched(whole, indices))), outcome(lambda: own(fetched(rows, indices))))


@pytest.mark.parametrize("other", [torch.zeros(2), torch.ones(2, dtype=torch.int64), torch.ones(1), (torch.ones(2),)])
def test_a_difference_is_seen(other: Any) -> None:
    with pytest.raises(AssertionError):
        assert_same(torch.ones(2), other)


def test_a_refusal_is_told_from_a_result() -> None:
    policy = BatchPolicy("jagged", token_budget=1)
    refused = outcome(lambda: collate(policy)([[1, 2]]))
    assert refused[0] == PolicyError.__name__
