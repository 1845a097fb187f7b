"""The ops on the CPU: what torch asks of an op, gradients in float64, and the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.library import opcheck

from labkit.errors import KernelArgumentError, ShapeError
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.copies import jagged_to_padded, padded_to_jagged
from labkit.gpu.ops.din_attention import attention_pool, attention_pool_backward
from labkit.gpu.ops.embedding_pool import embedding_pool, embedding_pool_table_grad, embedding_pool_weight_grad
from labkit.gpu.ops.segment_pool import segment_max, segment_max_backward, segment_sum, segment_sum_backward
from labkit.reference import attention, embedding, jagged, segments

OFFSETS = torch.tensor([0, 1, 1, 4, 9, 30, 30])
EVENTS, ROWS, ITEMS, DIM = 30, 6, 7, 3
CONFIG = LaunchConfig(2, 4, 8)
GIANTS, THRESHOLDS = CONFIG.giants(EVENTS), CONFIG.thresholds
BINS = bin_rows(OFFSETS, GIANTS, THRESHOLDS)
HOST = OFFSETS.numpy()
SHAPES = ((ROWS, DIM), (EVENTS, DIM), (EVENTS,), (ITEMS, DIM))
IDS = torch.from_numpy(np.random.default_rng(0).integers(0, ITEMS, EVENTS))


def numbers(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


def calls() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Each op that has a gradient, with arguments in float64."""
    values, scores, table = numbers(0, EVENTS, DIM), numbers(1, EVENTS), numbers(2, ITEMS, DIM)
    rows = (OFFSETS, BINS, THRESHOLDS)
    return {
        "jagged_to_padded": (jagged_to_padded, (values, OFFSETS, 4, 0.5)),
        "padded_to_jagged": (padded_to_jagged, (numbers(3, ROWS, 4, DIM), OFFSETS, EVENTS, 0.0)),
        "segment_sum": (segment_sum, (values, *rows, False)),
        "segment_mean": (segment_sum, (values, *rows, True)),
        "segment_max": (segment_max, (values, *rows)),
        "spread": (segment_sum_backward, (numbers(4, ROWS, DIM), *rows, EVENTS, True)),
        "embedding_sum": (embedding_pool, (table, IDS, scores, *rows, False)),
        "embedding_mean": (embedding_pool, (table, IDS, None, *rows, True)),
        "attention": (attention_pool, (scores, values, *rows)),
    }


each_call = pytest.mark.parametrize(("op", "arguments"), calls().values(), ids=calls())


def first(found: Any) -> Tensor:
    """The differentiable result."""
    result: Tensor = found[0] if isinstance(found, tuple) else found
    return result


@each_call
def test_torch_accepts_the_op(op: Any, arguments: tuple[Any, ...]) -> None:
    assert set(opcheck(op, arguments).values()) == {"SUCCESS"}


def without_gradient() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    grad, values, scores, table = (numbers(n, *shape).detach() for n, shape in enumerate(SHAPES))
    rows = (OFFSETS, BINS, THRESHOLDS)
    _, at = segment_max(values, *rows)
    attended = attention_pool(scores, values, *rows)
    return {
        "bin_rows": (bin_rows, (OFFSETS, GIANTS, THRESHOLDS)),
        "segment_sum_backward": (segment_sum_backward, (grad, *rows, EVENTS, True)),
        "segment_max_backward": (segment_max_backward, (grad, at, *rows, EVENTS)),
        "table_grad": (embedding_pool_table_grad, (grad, ITEMS, IDS, scores, OFFSETS, GIANTS, THRESHOLDS, True)),
        "weight_grad": (embedding_pool_weight_grad, (grad, table, IDS, *rows, True)),
        "attention_pool_backward": (attention_pool_backward, (grad, *attended, scores, values, *rows)),
    }


@pytest.mark.parametrize(("op", "arguments"), without_gradient().values(), ids=without_gradient())
def test_torch_accepts_the_binning_and_the_backward_ops(op: Any, arguments: tuple[Any, ...]) -> None:
    assert set(opcheck(op, arguments).values()) == {"SUCCESS"}


@each_call
def test_gradients_are_those_of_finite_differences(op: Any, arguments: tuple[Any, ...]) -> None:
    inputs = [a for a in arguments if isinstance(a, Tensor) and a.requires_grad]

    def call(*changed: Tensor) -> Tensor:
        fresh = iter(changed)
        return first(op(*(next(fresh) if isinstance(a, Tensor) and a.requires_grad else a for a in arguments)))

    assert torch.autograd.gradcheck(call, inputs)


@each_call
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_it_gives_the_same(op: Any, arguments: tuple[Any, ...], backend: str) -> None:
    torch.compiler.reset()  # torch counts compilations of a line, whatever is compiled there
    compiled = torch.compile(lambda *a: first(op(*a)), backend=backend, fullgraph=True)
    expected, found = first(op(*arguments)), compiled(*arguments)
    assert torch.equal(found, expected)
    inputs = [a for a in arguments if isinstance(a, Tensor) and a.requires_grad]
    for own, other in zip(
        torch.autograd.grad(found.sum(), inputs), torch.autograd.grad(expected.sum(), inputs), strict=True
    ):
        assert torch.equal(own, other)


def test_results_are_those_of_the_reference() -> None:
    exact: dict[str, Any] = {name: op(*arguments) for name, (op, arguments) in calls().items()}
    values, scores, table = (numbers(*a).detach().numpy() for a in ((0, EVENTS, DIM), (1, EVENTS), (2, ITEMS, DIM)))
    ids = IDS.numpy()
    expected = {
        "jagged_to_padded": jagged.to_padded(values, HOST, 4, 0.5),
        "padded_to_jagged": jagged.to_jagged(numbers(3, ROWS, 4, DIM).detach().numpy(), HOST),
        "segment_sum": segments.segment_sum(values, HOST),
        "segment_mean": segments.segment_sum(values, HOST, mean=True),
        "segment_max": segments.segment_max(values, HOST)[0],
        "embedding_sum": embedding.embedding_pool(table, ids, HOST, scores, mean=False),
        "embedding_mean": embedding.embedding_pool(table, ids, HOST, mean=True),
        "attention": attention.attention_pool(scores, values, HOST).out,
    }
    for name, array in expected.items():
        np.testing.assert_allclose(first(exact[name]).detach().numpy(), array, rtol=1e-13, atol=1e-13, err_msg=name)


def test_maxima_say_where_they_are_and_nan_wins() -> None:
    values = numbers(0, EVENTS, DIM).detach().round()
    values[6, 1] = values[8, 1] = torch.nan
    found, at = segment_max(values, OFFSETS, BINS, THRESHOLDS)
    expected, places = segments.segment_max(values.numpy(), HOST)
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(at.numpy(), places)


def test_an_id_outside_of_the_table_makes_its_own_row_nan_and_has_no_gradient() -> None:
    table, ids = numbers(2, ITEMS, DIM), IDS.clone()
    ids[2], ids[5] = ITEMS, -1  # rows 2 and 3
    found = embedding_pool(table, ids, None, OFFSETS, BINS, THRESHOLDS, False)
    assert found.isnan().all(1).tolist() == [False, False, True, True, False, False]
    (grad,) = torch.autograd.grad(found.nansum(), table)
    assert grad.isfinite().all()


def test_a_row_that_is_wholly_masked_is_zero_and_has_no_gradient() -> None:
    scores, values = numbers(1, EVENTS).detach(), numbers(0, EVENTS, DIM)
    scores[1:4] = -torch.inf
    scores.requires_grad_()
    found, _, _ = attention_pool(scores, values, OFFSETS, BINS, THRESHOLDS)
    assert found[[1, 2, 5]].abs().sum() == 0
    of_scores, of_values = torch.autograd.grad(found.sum(), (scores, values))
    assert of_scores[1:4].abs().sum() + of_values[1:4].abs().sum() == 0
    assert of_scores.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_values_are_summed_in_float32(dtype: torch.dtype) -> None:
    values = torch.ones(EVENTS, 1, dtype=dtype) * 1000
    assert segment_sum(values, OFFSETS, BINS, THRESHOLDS, False).dtype is dtype
    assert segment_sum(values, OFFSETS, BINS, THRESHOLDS, True)[4].item() == 1000


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_mean_of_more_events_than_16_bits_hold_has_its_gradient(dtype: torch.dtype) -> None:
    events = 70_000  # inf in float16, 70 144 in bfloat16
    offsets, ids = torch.tensor([0, events]), torch.zeros(events, dtype=torch.int64)
    bins = bin_rows(offsets, 0, THRESHOLDS)
    grad = torch.ones(1, 1, dtype=dtype)
    of_table = embedding_pool_table_grad(grad, 1, ids, None, offsets, 0, THRESHOLDS, True)
    assert of_table.dtype is dtype
    assert of_table.item() == pytest.approx(1, abs=2e-3)  # 70 000 numbers added one by one in float32
    of_values = segment_sum_backward(grad, offsets, bins, THRESHOLDS, events, True)
    assert of_values.dtype is dtype
    assert torch.equal(of_values, torch.full((events, 1), 1 / events).to(dtype))


def test_offsets_that_do_not_end_at_the_events_are_an_error() -> None:
    ids, bins = torch.tensor([0, 0, 1, 2, 0]), bin_rows(torch.tensor([0, 3, 4]), 0, THRESHOLDS)
    for offsets in ([0, 3, 4], [0, 3, 9]):
        with pytest.raises(RuntimeError):
            embedding_pool(torch.ones(5, 2), ids, None, torch.tensor(offsets), bins, THRESHOLDS, False)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"offsets": OFFSETS.int()}, KernelArgumentError, "offsets must be int64: got torch.int32"),
        ({"offsets": OFFSETS[None]}, ShapeError, r"offsets must be \(B\+1,\): got \(1, 7\)"),
        ({"values": torch.zeros(DIM, EVENTS).T}, KernelArgumentError, r"contiguous: got strides \(1, 30\)"),
        ({"values": torch.zeros(EVENTS)}, ShapeError, r"values must be \(T, D\) with D >= 1: got \(30,\)"),
        ({"values": torch.zeros(EVENTS, 0)}, ShapeError, r"got \(30, 0\)"),
        ({"bins": BINS.long()}, KernelArgumentError, "bins must be int32: got torch.int64"),
        ({"bins": BINS[:8]}, ShapeError, r"bins must have 5 \+ giants \+ B entries.*got \(8,\) for B=6"),
        ({"thresholds": (1, 2)}, ShapeError, r"thresholds \[1, 2\]"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments = {"values": torch.zeros(EVENTS, DIM), "offsets": OFFSETS, "bins": BINS, "thresholds": THRESHOLDS}
    with pytest.raises(error, match=message):
        segment_sum(**(arguments | change), mean=False)


@pytest.mark.parametrize(
    ("op", "at", "wrong", "message"),
    [
        (
            "segment_max_backward",
            1,
            torch.zeros(ROWS - 1, DIM, dtype=torch.int32),
            r"at must be \(6, 3\): got \(5, 3\)",
        ),
        (
            "segment_max_backward",
            1,
            torch.zeros(ROWS, DIM, dtype=torch.int64),
            "at must be torch.int32: got torch.int64",
        ),
        ("attention_pool_backward", 0, torch.zeros(ROWS, DIM), "grad must be torch.float64: got torch.float32"),
        ("attention_pool_backward", 1, torch.zeros(ROWS, 1).double(), r"out must be \(6, 3\): got \(6, 1\)"),
        ("attention_pool_backward", 2, torch.zeros(ROWS + 1).double(), r"top must be \(6,\): got \(7,\)"),
        ("attention_pool_backward", 3, torch.zeros(()).double(), r"total must be \(6,\): got \(\)"),
        ("table_grad", 3, torch.zeros(EVENTS), "weights must be torch.float64: got torch.float32"),
        ("weight_grad", 0, torch.zeros(ROWS, 1).double(), r"grad must be \(6, 3\): got \(6, 1\)"),
    ],
)
def test_a_backward_takes_what_its_forward_returned(op: str, at: int, wrong: Tensor, message: str) -> None:
    call, arguments = without_gradient()[op]
    with pytest.raises((ShapeError, KernelArgumentError), match=message):
        call(*arguments[:at], wrong, *arguments[at + 1 :])


def test_bins_of_other_rows_or_thresholds_are_refused() -> None:
    values = torch.zeros(EVENTS, DIM)
    message = r"bins were made for 6 rows and thresholds \[2, 4, 8\]: got 6 rows and \[2, 4, 9\]"
    with pytest.raises(KernelArgumentError, match=message):
        segment_sum(values, OFFSETS, BINS, (2, 4, 9), False)
    more = bin_rows(torch.arange(9), 0, THRESHOLDS)
    with pytest.raises(KernelArgumentError, match=r"made for 8 rows .* got 6 rows"):
        segment_sum(values, OFFSETS, more, THRESHOLDS, False)
    assert segment_sum(values, OFFSETS, BINS.clone(), THRESHOLDS, False).shape == (ROWS, DIM)


def test_widths_and_rectangles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="width must be 1 to 2147483647: got 0"):
        jagged_to_padded(torch.zeros(EVENTS), OFFSETS, 0, 0.0)
    with pytest.raises(ShapeError, match="got 2147483648"):
        jagged_to_padded(torch.zeros(EVENTS), OFFSETS, 2**31, 0.0)
    with pytest.raises(ShapeError, match=r"L of 1 to 2147483647: got \(6, 2147483648, 0\)"):
        padded_to_jagged(torch.zeros(ROWS, 2**31, 0), OFFSETS, EVENTS, 0.0)
    with pytest.raises(
        ShapeError, match=r"padded must be \(B, L, ...\) with B=6 and L of 1 to 2147483647: got \(5, 4\)"
    ):
        padded_to_jagged(torch.zeros(5, 4), OFFSETS, EVENTS, 0.0)
