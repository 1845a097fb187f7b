"""Nested tensors of jagged batches and back; what torch can do with them, as the module says."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from labkit.errors import ShapeError
from labkit.layouts.history_order import ends_of
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.nested import as_nested, from_nested
from tests.models.host_syncs import HostSyncs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Torch logs why it has no kernel, and warns once of a prototype."""
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors")
        yield
    logging.disable(logging.NOTSET)


def batch_of(lengths: Sequence[int], device: str = "cpu", width: int = 8) -> JaggedBatch:
    torch.manual_seed(0)
    values = torch.randn(sum(lengths), width, device=device, requires_grad=True)
    return JaggedBatch(values, ends_of(torch.tensor(lengths)).to(device), len(lengths), max(lengths))


def values_of(batch: JaggedBatch) -> Tensor:
    assert isinstance(batch.values, Tensor)
    return batch.values


@pytest.mark.parametrize("lengths", [(2, 0, 3), (0, 0), (1,), (5, 5)], ids=str)
def test_there_and_back_is_the_same_memory(lengths: Sequence[int]) -> None:
    batch = batch_of(lengths)
    nested = as_nested(values_of(batch), batch)
    back = from_nested(nested, rows=1, longest=max(lengths))
    assert [len(row) for row in nested.unbind()] == list(lengths)
    assert (back.rows, back.longest) == (1, max(lengths))
    assert torch.equal(back.offsets, batch.offsets)
    assert values_of(back).data_ptr() == values_of(batch).data_ptr()
    assert torch.equal(values_of(back), values_of(batch))


def test_on_a_device_nothing_is_asked() -> None:
    batch = batch_of((2, 0, 3), "meta")
    with HostSyncs() as syncs:
        back = from_nested(as_nested(values_of(batch), batch))
    assert syncs.found == []
    assert values_of(back).shape == (5, 8)


def test_gradients_go_through() -> None:
    batch = batch_of((2, 0, 3))
    nested = as_nested(values_of(batch), batch)
    values_of(from_nested(layer_norm(linear(nested, torch.eye(8)), (8,)))).square().sum().backward()
    expected = values_of(batch).detach().requires_grad_()
    layer_norm(expected, (8,)).square().sum().backward()
    torch.testing.assert_close(values_of(batch).grad, expected.grad)


# --- the table of the module: where torch changes, it is to be written anew


def attend(batch: JaggedBatch, *, causal: bool) -> Tensor:
    own = as_nested(values_of(batch), batch).unflatten(-1, (1, 8)).transpose(1, 2)
    return scaled_dot_product_attention(own, own, own, is_causal=causal).transpose(1, 2).flatten(-2).values()


def test_attention_to_all_keys_works_on_the_cpu_and_asks_for_every_row() -> None:
    batch = batch_of((2, 0, 3))
    with HostSyncs() as syncs:
        found = attend(batch, causal=False)
    assert len(syncs.found) > 3
    rows = torch.split(values_of(batch), (2, 0, 3))
    expected = [scaled_dot_product_attention(row[None], row[None], row[None])[0] for row in rows if len(row)]
    torch.testing.assert_close(found, torch.cat(expected))
    found.sum().backward()
    assert values_of(batch).grad is not None


@pytest.mark.parametrize("lengths", [(2, 0, 3), (2, 3)], ids=str)
def test_causal_attention_does_not_exist_on_the_cpu(lengths: Sequence[int]) -> None:
    with pytest.raises(RuntimeError, match="No viable backend"):
        attend(batch_of(lengths), causal=True)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_does_not_exist_on_meta(causal: bool) -> None:
    with pytest.raises((RuntimeError, AttributeError)):
        attend(batch_of((2, 3), "meta"), causal=causal)


def test_a_sum_over_rows_has_no_backward() -> None:
    batch = batch_of((2, 3))
    total = as_nested(values_of(batch), batch).sum(1)
    assert total.shape == (2, 8)
    with pytest.raises(NotImplementedError, match="_nested_sum_backward"):
        total.sum().backward()


def test_softmax_over_rows_needs_an_event() -> None:
    batch = batch_of((2, 0, 3))
    torch.softmax(as_nested(values_of(batch), batch), 1).values().sum().backward()
    empty = batch_of((0, 0))
    with pytest.raises(RuntimeError, match="cannot reshape tensor of 0 elements"):
        torch.softmax(as_nested(values_of(empty), empty), 1)


def test_multihead_attention_does_not_train_on_them() -> None:
    batch = batch_of((2, 3))
    nested = as_nested(values_of(batch), batch)
    with pytest.raises(AssertionError, match="does not support NestedTensor outside of its fast path"):
        nn.MultiheadAttention(8, 1, batch_first=True)(nested, nested, nested)


# --- bad input


def test_what_is_no_jagged_batch() -> None:
    batch = batch_of((2, 0, 3))
    with pytest.raises(ShapeError, match=r"^values must have one entry an event: expected \(5, \.\.\.\), got \(4, 8\)"):
        as_nested(torch.zeros(4, 8), batch)
    with pytest.raises(ShapeError, match=r"^expected a nested tensor of layout torch\.jagged: got torch\.strided\."):
        from_nested(torch.zeros(2, 3))
    nested = as_nested(values_of(batch), batch)
    message = r"^a nested tensor with holes, or transposed, is no jagged batch: call contiguous\(\) on it\.$"
    for other in (nested.unflatten(-1, (2, 4)).transpose(1, 2), with_holes()):
        with pytest.raises(ShapeError, match=message):
            from_nested(other)
    moved = batch._replace(offsets=batch.offsets.to("meta"), longest=None)
    with pytest.raises(ShapeError, match=r"^the longest row of a jagged batch on meta is not known"):
        as_nested(torch.zeros(5, 8, device="meta"), moved)


def with_holes() -> Tensor:
    """The first 1 and 2 events of rows of 3 slots."""
    return torch.nested.narrow(torch.zeros(2, 3, 8), 1, torch.tensor([0, 0]), torch.tensor([1, 2]), layout=torch.jagged)
