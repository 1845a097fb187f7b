"""example_batch: the same samples in every layout, from a seed and lengths alone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from labkit.batching.strategies import Layout
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.masks import valid_mask
from labkit.models.inputs import example_batch, packs_of
from labkit.models.registry import MODELS, FieldSpec, Model, ModelSpec

LENGTHS = (3, 0, 1, 5, 0, 2)
EVERY = ModelSpec(
    Model.CTR,
    "every kind of field",
    tuple(Layout),
    (
        FieldSpec("items", "event", "int64", 3),  # so few that rows repeat them, 0 among them
        FieldSpec("prices", "event", "float32", None, (2,)),
        FieldSpec("target", "row", "int64", 50),
        FieldSpec("dense", "row", "float32", None, (4,)),
        FieldSpec("label", "row", "float32"),
    ),
    "ctr:Ctr",
)


def rows_of(batch: Any, name: str, layout: Layout) -> list[Any]:
    """The events of each real row, in the order of the rows."""
    values = batch.values[name]
    match layout:
        case Layout.PADDED:
            return [row[valid].tolist() for row, valid in zip(values, batch.valid, strict=True)]
        case Layout.PACKED_ROWS:
            pieces = []
            for pack in range(batch.rows):
                segments = range(1, int(batch.piece_offsets.diff()[pack]) + 1)
                pieces += [values[pack][batch.segment_ids[pack] == segment].tolist() for segment in segments]
            return [pieces[i] for i in packs_of(LENGTHS, values.shape[1]).inverse]
        case Layout.PACKED_SEQUENCE:
            return [part.tolist() for part in batch.unpack(values).split(batch.lengths.tolist())]
        case Layout.JAGGED | Layout.SEGMENTED | Layout.SPARSE:
            return [part.tolist() for part in values.split(batch.offsets.diff().tolist())]


@pytest.mark.parametrize("name", ["items", "prices"])
@pytest.mark.parametrize("layout", list(Layout), ids=str)
def test_every_layout_holds_the_same_events(layout: Layout, name: str) -> None:
    expected = rows_of(example_batch(EVERY, "jagged", LENGTHS, seed=4), name, Layout.JAGGED)
    assert [len(row) for row in expected] == list(LENGTHS)
    assert any(0 in row for row in expected) or name == "prices"
    assert rows_of(example_batch(EVERY, layout, LENGTHS, seed=4), name, layout) == expected


@pytest.mark.parametrize("layout", list(Layout), ids=str)
def test_every_layout_holds_the_same_fixed_fields(layout: Layout) -> None:
    expected: Any = example_batch(EVERY, "jagged", LENGTHS).values
    values: Any = example_batch(EVERY, layout, LENGTHS).values
    order = packs_of(LENGTHS).order if layout is Layout.PACKED_ROWS else np.arange(len(LENGTHS))
    for name in ("target", "dense", "label"):
        torch.testing.assert_close(values[name], expected[name][torch.from_numpy(order.copy())], rtol=0, atol=0)


def test_packs_hold_every_row_once_within_the_capacity() -> None:
    batch: Any = example_batch(EVERY, "packed_rows", LENGTHS, capacity=6)
    # 11 events into packs of 6: two of them
    assert batch.values["items"].shape == batch.positions.shape == (2, 6)
    packs = packs_of(LENGTHS, 6)
    assert sorted(packs.order) == list(range(6))
    assert batch.lengths.tolist() == [LENGTHS[i] for i in packs.order]
    assert batch.piece_offsets.tolist() == packs.offsets.tolist()
    for pack in range(2):
        pieces = batch.lengths[batch.piece_offsets[pack] : batch.piece_offsets[pack + 1]].tolist()
        padding = [0] * (6 - sum(pieces))
        assert batch.segment_ids[pack].tolist() == [s + 1 for s, n in enumerate(pieces) for _ in range(n)] + padding
        assert batch.positions[pack].tolist() == [p for n in pieces for p in range(n)] + padding


def test_ghost_rows_come_last_and_are_empty() -> None:
    padded: Any = example_batch(EVERY, "padded", LENGTHS, rows=8, width=7)
    assert padded.values["items"].shape == (8, 7)
    assert padded.rows == 6
    assert padded.lengths.tolist() == [*LENGTHS, 0, 0]
    assert padded.valid.tolist() == valid_mask(padded.lengths, 7).tolist()
    assert padded.values["dense"][6:].abs().max() == 0
    jagged: Any = example_batch(EVERY, "jagged", LENGTHS, rows=8)
    assert jagged.offsets.tolist() == [0, 3, 3, 4, 9, 9, 11, 11, 11]
    assert jagged.longest == 5


@pytest.mark.parametrize("model", list(Model))
def test_ids_are_within_their_vocabulary_and_seeds_differ(model: Model) -> None:
    spec = MODELS[model]
    batch: Any = example_batch(spec, "padded", [400] * 5)
    for field in spec.fields:
        values = batch.values[field.name]
        assert values.shape == (5, *([400] if field.per == "event" else []), *field.shape)
        assert str(values.dtype) == f"torch.{field.dtype}"
        if field.vocabulary is not None:
            assert 0 <= int(values.min()) <= int(values.max()) < field.vocabulary
    again, other = (example_batch(spec, "padded", [400] * 5, seed=seed) for seed in (0, 1))
    assert torch.equal(batch.values["items"], again.values["items"])  # type: ignore[index]
    assert not torch.equal(batch.values["items"], other.values["items"])  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengths": []}, "lengths must be (B,) whole numbers >= 0, B >= 1: got shape (0,)"),
        ({"lengths": [1, -1]}, "lengths must be (B,) whole numbers >= 0, B >= 1: got shape (2,), int64."),
        ({"lengths": [1.5]}, "got shape (1,), float64."),
        ({"rows": 1}, "rows must be at least the number of lengths: expected >= 6, got 1."),
        ({"layout": "padded", "width": 4}, "lengths must be at most the width: expected <= 4, got 5. Raise width."),
        ({"layout": "packed_rows", "capacity": 4}, "lengths must be at most the capacity: expected <= 4, got 5."),
        ({"layout": "packed_rows", "rows": 9}, "packed rows have no ghost rows: leave rows out."),
        (
            {"spec": MODELS[Model.DIN], "layout": "packed_sequence"},
            "model din does not take the packed_sequence layout: use padded or jagged or segmented or packed_rows",
        ),
        ({"layout": "csr"}, "layout 'csr' does not exist: use one of padded, jagged"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments: dict[str, Any], message: str) -> None:
    given = {"spec": EVERY, "layout": "jagged", "lengths": LENGTHS} | arguments
    with pytest.raises((ShapeError, PolicyError), match=re.escape(message)):
        example_batch(**given)
