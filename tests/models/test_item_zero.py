"""The item id 0, which many data sets have and padding is filled with: an event like any other, everywhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout
from labkit.layouts.collate import collate
from labkit.layouts.device_padding import pad_on_device
from labkit.layouts.packed import PieceSample
from labkit.models.registry import MODELS, Model
from tests.models.agreement import small_model, small_spec

POLICIES = {
    Layout.PADDED: BatchPolicy("bucket_rows", rows=2, bucket_edges=(4,)),
    Layout.JAGGED: BatchPolicy("jagged", token_budget=16),
    Layout.SEGMENTED: BatchPolicy("segmented", token_budget=16),
    Layout.PACKED_ROWS: BatchPolicy("packed", rows=2, capacity=4),
    Layout.SPARSE: BatchPolicy("sparse", token_budget=16),
}


def collated(model: Model, layout: Layout, items: list[int], padding_value: int = 0) -> Any:
    """A batch of one user with this history; the other fields are zeros."""
    spec = small_spec(model)
    sample = {}
    for field in spec.fields:
        entries = [len(items)] if field.per == "event" else []
        sample[field.name] = torch.zeros([*entries, *field.shape], dtype=getattr(torch, field.dtype))
    sample["items"] = torch.tensor(items)
    own = collate(POLICIES[layout], sequences=spec.sequences, padding_value=padding_value)
    return own([PieceSample(sample, 0, 0, len(items)) if layout is Layout.PACKED_ROWS else sample])


@pytest.mark.parametrize(
    ("model", "layout"), [(m, a) for m in (Model.DIN, Model.POOLED, Model.CTR) for a in MODELS[m].takes], ids=str
)
def test_a_history_of_0_5_0_has_three_events(model: Model, layout: Layout) -> None:
    module = small_model(model)
    batch = collated(model, layout, [0, 5, 0])
    lengths = batch.offsets.diff() if layout in (Layout.JAGGED, Layout.SEGMENTED, Layout.SPARSE) else batch.lengths
    assert lengths.tolist() == [3]
    # what the padding is filled with does not matter, the events that are 0 do
    torch.testing.assert_close(module(collated(model, layout, [0, 5, 0], padding_value=4)), module(batch))
    for other in ([5], [0, 5]):
        assert (module(collated(model, layout, other)) - module(batch)).abs().max() > 1e-6


def test_padding_on_the_device_keeps_it() -> None:
    own = pad_on_device(collate(POLICIES[Layout.PADDED], padding_value=0))
    batch = own([torch.tensor([0, 5, 0])]).padded()
    assert batch.lengths.tolist() == [3]
    assert batch.valid.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("model", [Model.DIN, Model.POOLED, Model.CTR])
def test_padding_gives_no_gradient_to_item_0(model: Model) -> None:
    module = small_model(model)
    module.loss(collated(model, Layout.PADDED, [5])).mean.backward()
    name = "tables.tables.items_table.weight" if model is Model.CTR else "table.weight"
    gradient = module.get_parameter(name).grad
    assert gradient is not None
    jagged = small_model(model)
    jagged.loss(collated(model, Layout.JAGGED, [5])).mean.backward()
    expected = jagged.get_parameter(name).grad
    assert expected is not None
    # the candidate is item 0 as well, and has a gradient of its own
    torch.testing.assert_close(gradient[0], expected[0])
