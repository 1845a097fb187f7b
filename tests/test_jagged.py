"""Jagged and the one validator of offsets: rules, messages, rows, the recent cut; NumPy and torch alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import ShapeError
from labkit.jagged import Jagged, validate_offsets

FAMILIES = pytest.mark.parametrize("array", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])


def rows_of(jagged: Jagged) -> list[list[Any]]:
    return [row.tolist() for row in jagged]


# --- the validator


@FAMILIES
@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([[0, 5]], "offsets must be one-dimensional: expected (B+1,), got (1, 2). Flatten them."),
        ([0.0, 5.0], "offsets must be whole numbers: expected an integer dtype, got "),
        ([False, True], "offsets must be whole numbers: expected an integer dtype, got "),
        (
            [1, 5],
            "offsets must start at 0: expected offsets[0] == 0, got 1 (values (5,), B=1). Rebuild with",
        ),
        (
            [-1, 5],
            "offsets must start at 0: expected offsets[0] == 0, got -1 (values (5,), B=1). Rebuild with",
        ),
        (
            [0, 3, 2, 5],
            "offsets must not decrease: expected offsets[2] >= offsets[1] == 3, got 2 (values (5,), B=3). Rebuild with",
        ),
        ([0, 3, 4], "offsets must end at T: expected offsets[-1] == 5, got 4 (values (5,), B=2). Rebuild with"),
        ([0, 3, 9], "offsets must end at T: expected offsets[-1] == 5, got 9 (values (5,), B=2). Rebuild with"),
        ([0], "offsets must end at T: expected offsets[-1] == 5, got 0 (values (5,), B=0). Rebuild with"),
    ],
)
def test_each_broken_rule_has_its_own_message(array: Callable[..., Any], offsets: list[Any], message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        validate_offsets(array(offsets), 5)


@FAMILIES
def test_offsets_need_an_entry_even_for_no_rows(array: Callable[..., Any]) -> None:
    empty = array(np.zeros(0, np.int64))
    with pytest.raises(ShapeError, match=r"expected at least 1, got 0\. For no rows \(B=0\) they are \[0\]\.$"):
        validate_offsets(empty, 0)


def test_offsets_that_are_no_array_are_refused() -> None:
    with pytest.raises(ShapeError, match="offsets must be a NumPy array or a torch tensor: got list"):
        validate_offsets([0, 5], 5)


def test_the_message_has_the_shape_of_two_dimensional_values() -> None:
    expected = "expected offsets[-1] == 12, got 11 (values (12, 64), B=4). Rebuild with Jagged.from_lengths."
    with pytest.raises(ShapeError, match=re.escape(expected)):
        Jagged(np.zeros((12, 64)), np.array([0, 2, 2, 9, 11]))


@FAMILIES
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_integer_offsets_become_int64(array: Callable[..., Any], dtype: str) -> None:
    offsets = validate_offsets(array(np.array([0, 2, 5], dtype)), 5)
    assert str(offsets.dtype).removeprefix("torch.") == "int64"
    assert offsets.tolist() == [0, 2, 5]


def test_int64_offsets_are_not_copied() -> None:
    array, tensor = np.array([0, 5]), torch.tensor([0, 5])
    assert validate_offsets(array, 5) is array
    assert validate_offsets(tensor, 5).data_ptr() == tensor.data_ptr()


@given(st.lists(st.integers(-2, 12), min_size=1, max_size=6), st.integers(0, 12))
def test_offsets_pass_exactly_when_they_cut_the_values_into_rows(offsets: list[int], total: int) -> None:
    cuts = offsets[0] == 0 and offsets[-1] == total and sorted(offsets) == offsets
    for array in (np.array(offsets), torch.tensor(offsets)):
        if cuts:
            assert validate_offsets(array, total).tolist() == offsets
        else:
            with pytest.raises(ShapeError, match="Rebuild with"):
                validate_offsets(array, total)


# --- construction


@FAMILIES
def test_rows_are_what_lies_between_two_offsets(array: Callable[..., Any]) -> None:
    jagged = Jagged(array([1, 2, 3, 4, 5]), array([0, 2, 2, 5]))
    assert len(jagged) == 3
    assert jagged.events == 5
    assert jagged.lengths.tolist() == [2, 0, 3]
    assert rows_of(jagged) == [[1, 2], [], [3, 4, 5]]
    assert [jagged[i].tolist() for i in (0, 1, 2, -1)] == [[1, 2], [], [3, 4, 5], [3, 4, 5]]
    with pytest.raises(IndexError, match="row 3 does not exist: there are 3 rows"):
        jagged[3]


@FAMILIES
@pytest.mark.parametrize("shape", [(0,), (0, 4)])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_no_rows_and_no_events_are_legal(array: Callable[..., Any], shape: tuple[int, ...], lengths: list[int]) -> None:
    jagged = Jagged.from_lengths(array(np.zeros(shape)), lengths)
    assert len(jagged) == len(lengths)
    assert [tuple(row.shape) for row in jagged] == [shape] * len(lengths)
    assert tuple(jagged.recent(2).values.shape) == shape


@FAMILIES
def test_lengths_and_rows_build_the_same(array: Callable[..., Any]) -> None:
    values = array(np.arange(10.0).reshape(5, 2))
    by_lengths = Jagged.from_lengths(values, array([2, 0, 3]))
    by_rows = Jagged.from_rows([values[:2], values[2:2], values[2:]])
    for jagged in (by_lengths, by_rows):
        assert jagged.offsets.tolist() == [0, 2, 2, 5]
        assert jagged.values.tolist() == values.tolist()
        assert type(jagged.offsets) is type(jagged.values) is type(values)


def test_an_empty_list_takes_the_dtype_of_the_other_rows() -> None:
    jagged = Jagged.from_rows([[], [7, 8], []])
    assert jagged.values.dtype == np.int64
    assert rows_of(jagged) == [[], [7, 8], []]
    assert rows_of(Jagged.from_rows([[], []])) == [[], []]
    assert Jagged.from_rows([[], np.ones((2, 3))]).values.shape == (2, 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Jagged.from_lengths(np.zeros(5), [2, 2]),
            "lengths must add up to T: expected 5, got 4 (values (5,), B=2).",
        ),
        (lambda: Jagged.from_lengths(np.zeros(1), [2, -1]), "lengths must be 0 or more: got lengths[1] == -1."),
        (
            lambda: Jagged.from_lengths(np.zeros(1), [1.0]),
            "lengths must be (B,) whole numbers: got shape (1,), dtype float64.",
        ),
        (lambda: Jagged.from_lengths([1, 2], [2]), "values must be a NumPy array or a torch tensor: got list."),
        (lambda: Jagged.from_rows([]), "from_rows needs at least one row"),
        (lambda: Jagged.from_rows([np.zeros(1), torch.zeros(1)]), "rows must be of one family"),
        (lambda: Jagged.from_rows([np.zeros((1, 2)), np.zeros((1, 3))]), "rows must all be (n,), or all (n, D): "),
        (lambda: Jagged.from_rows([torch.zeros(1, 2), torch.zeros(1, 3)]), "rows must all be (n,), or all (n, D): "),
        (lambda: Jagged(np.zeros((1, 2, 3)), np.array([0, 1])), "values must be (T,) or (T, D): got shape (1, 2, 3)."),
        (lambda: Jagged(torch.zeros(1), np.array([0, 1])), "must be of one family: got Tensor and ndarray"),
        (
            lambda: Jagged(torch.zeros(1, device="meta"), torch.tensor([0, 1])),
            "must be on one device: got meta and cpu",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(build: Callable[[], Jagged], message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        build()


# --- the recent cut


@FAMILIES
@pytest.mark.parametrize(
    ("n", "kept"),
    [
        (2, [[2, 3], [], [4], [6, 7]]),
        (0, [[], [], [], []]),  # not everything, as h[-0:] would
        (5, [[1, 2, 3], [], [4], [5, 6, 7]]),
    ],
)
def test_the_most_recent_events_of_each_row_are_kept(array: Callable[..., Any], n: int, kept: list[list[int]]) -> None:
    jagged = Jagged.from_lengths(array([1, 2, 3, 4, 5, 6, 7]), [3, 0, 1, 3])
    assert rows_of(jagged.recent(n)) == kept
    assert rows_of(jagged) == [[1, 2, 3], [], [4], [5, 6, 7]]


@pytest.mark.parametrize(
    ("n", "message"), [(-1, "n must be 0 or more: got -1"), (1.5, "n must be a whole number: got 1.5")]
)
def test_a_cap_that_is_none_is_refused(n: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Jagged.from_lengths(np.arange(3), [3]).recent(n)


@given(st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1, max_size=6), st.integers(0, 7))
def test_recent_equals_the_slice_of_each_row(rows: list[list[int]], n: int) -> None:
    assert rows_of(Jagged.from_rows(rows).recent(n)) == [row[len(row) - min(n, len(row)) :] for row in rows]


def test_gradients_flow_through_the_cut() -> None:
    values = torch.arange(4.0, requires_grad=True)
    Jagged.from_lengths(values, [3, 1]).recent(2).values.sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0, 1, 1, 1]
