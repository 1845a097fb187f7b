"""to_padded: a jagged array as a rectangle."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import PolicyError, ShapeError
from labkit.jagged import Jagged
from labkit.layouts.padded import to_padded, valid_slots


def test_longer_rows_keep_their_most_recent_events() -> None:
    jagged = Jagged.from_rows([[1, 2], [], [3, 4, 5]])
    assert to_padded(jagged, 2).tolist() == [[1, 2], [0, 0], [4, 5]]
    assert to_padded(jagged, 4, padding_value=-1).tolist() == [[1, 2, -1, -1], [-1] * 4, [3, 4, 5, -1]]


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
@pytest.mark.parametrize("lengths", [[], [0, 0]])
def test_no_rows_and_no_events_give_empty_rectangles(shape: tuple[int, ...], lengths: list[int]) -> None:
    padded = to_padded(Jagged.from_lengths(np.zeros(shape, np.float32), lengths), 2)
    assert padded.shape == (len(lengths), 2, *shape[1:])
    assert padded.dtype == torch.float32


@given(
    st.lists(st.lists(st.integers(1, 99), max_size=6), min_size=1, max_size=6),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
)
def test_each_row_is_its_recent_events_then_padding(
    rows: list[list[int]], width: int, vectors: bool, torch_: bool
) -> None:
    values: Any = np.array([x for row in rows for x in row], np.int64)
    values = np.stack([values, -values], axis=1) if vectors else values
    jagged = Jagged.from_lengths(torch.from_numpy(values) if torch_ else values, [len(row) for row in rows])
    padded = to_padded(jagged, width, padding_value=7)
    kept = [row[len(row) - min(width, len(row)) :] for row in rows]
    for own, slots in zip(kept, padded.tolist(), strict=True):
        expected = own + [7] * (width - len(own))
        if vectors:
            assert slots == [[x, -x] for x in own] + [[7, 7]] * (width - len(own))
        else:
            assert slots == expected
    valid = valid_slots(torch.tensor([len(row) for row in kept]), width)
    assert valid.sum(dim=1).tolist() == [len(row) for row in kept]


def test_gradients_reach_the_kept_events_alone() -> None:
    values = torch.arange(1.0, 5.0, requires_grad=True)
    to_padded(Jagged.from_lengths(values, [3, 0, 1]), 2).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0, 1, 1, 1]


def test_read_only_values_are_left_alone() -> None:
    values = np.arange(3)
    values.flags.writeable = False
    to_padded(Jagged.from_lengths(values, [3]), 3).add_(1)
    assert values.tolist() == [0, 1, 2]


def test_what_cannot_work_is_refused() -> None:
    jagged = Jagged.from_rows([[1, 2]])
    with pytest.raises(PolicyError, match="length must be 1 or more: got 0"):
        to_padded(jagged, 0)
    with pytest.raises(ShapeError, match=re.escape("padding_value 0.5 does not fit values of torch.int64")):
        to_padded(jagged, 2, padding_value=0.5)
