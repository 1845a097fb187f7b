"""check_batch: batches that contradict themselves, each with the number that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from labkit.batching.strategies import Layout
from labkit.errors import ShapeError
from labkit.layouts.checks import check_batch
from labkit.models.inputs import example_batch
from labkit.models.registry import MODELS, Model

LENGTHS = (3, 0, 1, 5)
ALL = [(spec, layout) for spec in MODELS.values() for layout in spec.takes]


@pytest.mark.parametrize(("spec", "layout"), ALL, ids=lambda x: str(getattr(x, "model", x)))
def test_batches_made_by_labkit_pass(spec: Any, layout: Layout) -> None:
    ghosts = {} if layout is Layout.PACKED_ROWS else {"rows": 6}
    check_batch(example_batch(spec, layout, LENGTHS, **ghosts), spec.sequences)


def batch(layout: str) -> Any:
    model = Model.GRU4REC if layout == "packed_sequence" else Model.POOLED
    return example_batch(MODELS[model], layout, LENGTHS)


@pytest.mark.parametrize(
    ("layout", "changed", "message"),
    [
        (
            "padded",
            lambda b: b._replace(lengths=torch.tensor([3, 0, 6, 5])),
            "lengths must be at most the width: expected <= 5, got lengths[2] == 6. Cut the rows, or pad wider.",
        ),
        ("padded", lambda b: b._replace(lengths=b.lengths - 1), "0 or more: expected >= 0, got lengths[1] == -1."),
        (
            "padded",
            lambda b: b._replace(valid=~b.valid),
            "valid must be True for the events of each row: expected 3, got 2 in row 0.",
        ),
        (
            "padded",
            lambda b: b._replace(valid=b.valid[:, :4]),
            "must be (R, L, ..), (R, L) and (R,): got (4, 5), (4, 4)",
        ),
        ("padded", lambda b: b._replace(rows=3), "got rows == 3 of 4, with 5 events after them."),
        ("jagged", lambda b: b._replace(offsets=torch.tensor([0, 3, 4])), "offsets[-1] == 9, got 4"),
        ("jagged", lambda b: b._replace(offsets=torch.tensor([0, 3, 10])), "offsets[-1] == 9, got 10"),
        ("jagged", lambda b: b._replace(offsets=torch.tensor([0, 3, 2, 9])), "offsets[2] >= offsets[1] == 3, got 2"),
        ("jagged", lambda b: b._replace(longest=4), "longest must be the longest row: expected 5, got 4."),
        ("segmented", lambda b: b._replace(bins=b.bins.flip(0)), "bins must be those of the offsets and thresholds"),
        ("segmented", lambda b: b._replace(bins=b.bins[1:]), "bins must be those of the offsets and thresholds"),
        ("sparse", lambda b: b._replace(row_ids=b.row_ids + 1), "row_ids must be those of the offsets"),
        (
            "sparse",
            lambda b: b._replace(counts={"items": b.counts["items"]._replace(counts=torch.ones(9) / 2)}),
            "counts of items must add up to the lengths: expected 9, got 4.5 events.",
        ),
        (
            "packed_rows",
            lambda b: b._replace(segment_ids=b.segment_ids.clamp(max=1)),
            "of each piece: expected 3 of piece 2, got 4.",
        ),
        ("packed_rows", lambda b: b._replace(piece_offsets=torch.tensor([0, 4])), "must be of 2 packs: got 1."),
        ("packed_sequence", lambda b: b._replace(lengths=b.lengths + 1), "the same events: got 13, 9 and 9."),
    ],
)
def test_a_batch_that_contradicts_itself_is_refused(layout: str, changed: Callable[[Any], Any], message: str) -> None:
    check_batch(batch(layout), ["items"])
    with pytest.raises(ShapeError, match=re.escape(message)):
        check_batch(changed(batch(layout)), ["items"])


def test_fields_must_be_named() -> None:
    with pytest.raises(
        ShapeError, match="sequences= must name fields with one entry an event: the batch has items, ta"
    ):
        check_batch(batch("padded"))
