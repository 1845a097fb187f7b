"""The ops in float64 by torch's own operations, on any device and with autograd: what the kernels must equal there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.copies import jagged_to_padded, padded_to_jagged
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.embedding_pool import embedding_pool
from labkit.gpu.ops.segment_pool import segment_max, segment_sum
from labkit.layouts.segments import row_ids, segment_mean
from labkit.layouts.segments import segment_max as maxima
from labkit.layouts.segments import segment_sum as sums
from labkit.layouts.softmax import segment_softmax

#: Storage -> difference allowed, as a share of 1, of the number itself, and of the root mean square of all of them: a
#: result is rounded once, a gradient at most three times. The bounds of the arithmetic itself are held by the trials.
CLOSE = {torch.float32: 5e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

Inputs = dict[str, Tensor]


class Rows:
    """Ragged rows on a device, with what both sides need to know of them."""

    def __init__(self, offsets: Tensor, events: int, config: LaunchConfig) -> None:
        self.offsets, self.events, self.config = offsets, events, config
        self.count = offsets.shape[0] - 1
        self.bins = bin_rows(offsets, config.giants(events), config.thresholds)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the ops take them."""
        return self.offsets, self.bins, self.config.thresholds

    @property
    def ids(self) -> Tensor:
        """(T,) the row of each event."""
        return row_ids(self.offsets, self.events)


def inputs_of(rows: Rows, dim: int, dtype: torch.dtype, items: int, seed: int = 0) -> Inputs:
    """Values, scores, a table and ids; rounded to bfloat16, so that every storage type has the same numbers."""
    device = rows.offsets.device
    random = torch.Generator(device=device).manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=device).bfloat16().to(dtype)

    ids = torch.randint(items, (rows.events,), generator=random, device=device)
    return {
        "values": normal(rows.events, dim),
        "scores": normal(rows.events),
        "table": normal(items, dim),
        "ids": ids,
        "weight": normal(rows.count, dim),
    }


def by_kernels(name: str, rows: Rows, given: Inputs) -> Tensor:
    """The result of an op."""
    found: Any = {
        "sum": lambda: segment_sum(given["values"], *rows.arguments, False),
        "mean": lambda: segment_sum(given["values"], *rows.arguments, True),
        "max": lambda: segment_max(given["values"], *rows.arguments)[0],
        "embedding": lambda: embedding_pool(given["table"], given["ids"], given["scores"], *rows.arguments, True),
        "attention": lambda: attention_pool(given["scores"], given["values"], *rows.arguments)[0],
        "padded": lambda: jagged_to_padded(given["values"], rows.offsets, _WIDTH, 0.0),
        "copies": lambda: padded_to_jagged(
            jagged_to_padded(given["values"], rows.offsets, _WIDTH, 0.0), rows.offsets, rows.events, 0.0
        ),
    }[name]()
    result: Tensor = found
    return result


def result_and_gradients(name: str, rows: Rows, given: Inputs) -> list[Tensor]:
    """The result of an op, and the gradients of its squares."""
    leaves = {key: given[key].detach().clone().requires_grad_() for key in GRADIENTS[name]}
    result = by_kernels(name, rows, given | leaves)
    return [result.detach(), *torch.autograd.grad(result.square().sum(), list(leaves.values()))]


def by_torch(name: str, rows: Rows, given: Inputs) -> Tensor:
    """The same by torch's operations."""
    ids, count = rows.ids, rows.count
    values, lengths = given["values"], rows.offsets.diff()
    cases: dict[str, Callable[[], Tensor]] = {
        "sum": lambda: sums(values, ids, count),
        "mean": lambda: segment_mean(values, ids, lengths),
        "max": lambda: _first_maxima(values, rows),
        "embedding": lambda: segment_mean(given["table"][given["ids"]] * given["scores"][:, None], ids, lengths),
        "attention": lambda: sums(segment_softmax(given["scores"], ids, count)[:, None] * values, ids, count),
        "padded": lambda: _padded(values, rows),
        "copies": lambda: values * _kept(rows)[:, None],
    }
    return cases[name]()


#: Slots of the rectangles: some rows are cut, most are filled.
_WIDTH = 33

#: Results that have gradients, and of which inputs.
GRADIENTS = {
    "sum": ("values",),
    "mean": ("values",),
    "max": ("values",),
    "embedding": ("table", "scores"),
    "attention": ("scores", "values"),
    "padded": ("values",),
    "copies": ("values",),
}


def _first_maxima(values: Tensor, rows: Rows) -> Tensor:
    """(B, D) maxima by the place of the first one, so that of equals the first alone has a gradient."""
    ids, events = rows.ids, rows.events
    if not events:
        return maxima(values, ids, rows.count)
    top = maxima(values.detach(), ids, rows.count)
    places = torch.arange(events, device=values.device)[:, None].expand_as(values)
    first = torch.full_like(top, events, dtype=torch.int64)
    first.scatter_reduce_(0, ids[:, None].expand_as(values), places.masked_fill(values != top[ids], events), "amin")
    return values.gather(0, first.clamp(max=events - 1)).masked_fill(first == events, 0)


def _kept(rows: Rows) -> Tensor:
    """(T,) bool: the event is among the last of its row that have a slot."""
    return torch.arange(rows.events, device=rows.offsets.device) >= (rows.offsets[1:] - _WIDTH)[rows.ids]


def _padded(values: Tensor, rows: Rows) -> Tensor:
    first = (rows.offsets[1:] - _WIDTH).clamp(min=rows.offsets[:-1])
    slots = torch.arange(rows.events, device=values.device) - first[rows.ids]
    cells = rows.ids * _WIDTH + slots
    cells = torch.where(slots < 0, rows.count * _WIDTH, cells)  # the last cell takes what is cut
    empty = values.new_zeros((rows.count * _WIDTH + 1, values.shape[1]))
    return empty.index_add(0, cells, values)[:-1].view(rows.count, _WIDTH, values.shape[1])


def differences(name: str, rows: Rows, given: Inputs, *, floor: float = 1.0) -> None:
    """Compare an op and its gradients with torch in float64.

    Args:
        name: of the op.
        rows: their offsets and regimes.
        given: of ``inputs_of``.
        floor: the 1 of ``CLOSE``; 0 where all numbers are small, so that zeros in their place are seen.

    Raises:
        AssertionError: they differ; the message says where and by how much.
    """
    own = _with_gradients(by_kernels, name, rows, given)
    wide = {key: value.double() if value.is_floating_point() else value for key, value in given.items()}
    expected = _with_gradients(by_torch, name, rows, wide)
    for what, result in own.items():
        _assert_close(f"{name}, {what}", result, expected[what], floor)


def _with_gradients(
    compute: Callable[[str, Rows, Inputs], Tensor], name: str, rows: Rows, given: Inputs
) -> dict[str, Tensor]:
    named = GRADIENTS[name]
    leaves = {key: given[key].detach().clone().requires_grad_() for key in named}
    result = compute(name, rows, given | leaves)
    weight = given["weight"] if result.shape == given["weight"].shape else 1
    grads = torch.autograd.grad((result * weight).sum(), [leaves[key] for key in named])
    return {"result": result.detach()} | {f"gradient of {k}": g for k, g in zip(named, grads, strict=True)}


def _assert_close(what: str, found: Tensor, expected: Tensor, floor: float) -> None:
    close = CLOSE.get(found.dtype, 1e-9)
    away = (found.double() - expected).abs()
    allowed = close * (floor + expected.abs() + (expected.square().mean().sqrt() if expected.numel() else 0))
    wrong = ~(away <= allowed)
    if bool(wrong.any()):
        at = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(
            f"{what}: {int(wrong.sum())} of {wrong.numel()} differ, first at {at}: expected "
            f"{float(expected[at]):.7g}, got {float(found[at]):.7g} ({found.dtype}, shape {tuple(found.shape)})"
        )
