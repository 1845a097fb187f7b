"""The calls that are timed: each op of ours, the bytes that it must move, and the same by torch in several ways.

What both sides need is made before: rectangles, nested tensors, the graph of a backward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.copies import jagged_to_padded, padded_to_jagged
from labkit.gpu.ops.din_attention import attention_pool, attention_pool_backward
from labkit.gpu.ops.embedding_pool import embedding_pool, embedding_pool_table_grad
from labkit.gpu.ops.segment_pool import (
    segment_max,
    segment_max_backward,
    segment_sum,
    segment_sum_backward,
)
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.peers import (
    backward_of,
    fbgemm_op,
    nested_of,
    padded_attention,
    padded_of,
    scattered_attention,
)
from labkit.gpu_check.ragged_data import RaggedData
from labkit.layouts.segments import row_ids
from labkit.layouts.segments import segment_max as scattered_max
from labkit.layouts.segments import segment_sum as scattered_sum

_FLOAT, _ID = 4, 8  # bytes

Call = Callable[[], object]


@dataclass(frozen=True, eq=False)
class OpCalls:
    """One op on one batch.

    Attributes:
        floor_bytes: that must move at least once.
        own: the op.
        peers: the same by others, by name.
        padded: the same by others in rectangles, of which a batch may have more than there is memory: each makes them,
            and returns the call that is timed.
        gathered_bytes: that move where no entry of a table is in a cache when it comes again; None: there is no table.
    """

    floor_bytes: int
    own: Call
    peers: dict[str, Call] = field(default_factory=dict)
    padded: dict[str, Callable[[], Call]] = field(default_factory=dict)
    gathered_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """An op that is timed.

    Attributes:
        calls: makes the calls on a batch.
        copies: (T, D) arrays that it needs at once, its results among them.
        rectangles: (B, L, D) arrays likewise.
        is_like_peers: its first result is that of its peers, where the shapes are the same.
    """

    calls: Callable[[Lab, RaggedData], OpCalls]
    copies: float = 1.0
    rectangles: float = 0.0
    is_like_peers: bool = True


def _padding(lab: Lab, data: RaggedData) -> OpCalls:
    values, offsets, width = data.values, data.offsets, data.longest
    moved = (data.events + data.rows * width) * data.dim * _FLOAT + (data.rows + 1) * _ID
    nested = nested_of(values, data)
    peers: dict[str, Call] = {
        "nested.to_padded_tensor": lambda: nested.to_padded_tensor(0.0),
        "aten._jagged_to_padded_dense_forward": lambda: torch.ops.aten._jagged_to_padded_dense_forward(
            values, [offsets], [width], 0.0
        ),
    }
    peers |= fbgemm_op("jagged_to_padded_dense", values, [offsets], [width], 0.0)
    own = lambda: jagged_to_padded(values, offsets, width, 0.0)  # noqa: E731
    return OpCalls(moved, own, peers, {"gather and mask": lambda: lambda: padded_of(values, data)})


def _unpadding(lab: Lab, data: RaggedData) -> OpCalls:
    offsets, events, width = data.offsets, data.events, data.longest
    padded = jagged_to_padded(data.values, offsets, width, 0.0)
    valid = torch.arange(width, device=lab.device) < offsets.diff()[:, None]
    moved = 2 * events * data.dim * _FLOAT + (data.rows + 1) * _ID
    peers: dict[str, Call] = {
        "index by a mask": lambda: padded[valid],
        "aten._padded_dense_to_jagged_forward": lambda: torch.ops.aten._padded_dense_to_jagged_forward(
            padded, [offsets], events
        ),
    }
    peers |= fbgemm_op("dense_to_jagged", padded, [offsets], events)
    return OpCalls(moved, lambda: padded_to_jagged(padded, offsets, events, 0.0), peers)


def _sums(lab: Lab, data: RaggedData) -> OpCalls:
    values, offsets = data.values, data.offsets
    nested, ids = nested_of(values, data), row_ids(offsets, data.events)

    def in_rectangles() -> Call:
        padded = padded_of(values, data)
        return lambda: padded.sum(dim=1)

    peers: dict[str, Call] = {
        "segment_reduce": lambda: torch.segment_reduce(values, "sum", offsets=offsets, unsafe=True),
        "index_add": lambda: scattered_sum(values, ids, data.rows),
        "sum of nested jagged": lambda: nested.sum(dim=1),
    }
    own = lambda: segment_sum(values, *data.row_arguments, False)  # noqa: E731
    return OpCalls(_pool_bytes(data), own, peers, {"sum of padded": in_rectangles})


def _spreads(lab: Lab, data: RaggedData) -> OpCalls:
    ids, lengths, grad = row_ids(data.offsets, data.events), data.offsets.diff(), data.grad
    peers: dict[str, Call] = {
        "gather by row": lambda: grad[ids],
        "repeat_interleave": lambda: grad.repeat_interleave(lengths, dim=0, output_size=data.events),
    }
    own = lambda: segment_sum_backward(grad, *data.row_arguments, data.events, False)  # noqa: E731
    return OpCalls(_pool_bytes(data), own, peers)


def _maxima(lab: Lab, data: RaggedData) -> OpCalls:
    values, offsets, ids = data.values, data.offsets, row_ids(data.offsets, data.events)

    def in_rectangles() -> Call:
        padded = padded_of(values, data, -torch.inf)
        return lambda: padded.max(dim=1)

    peers: dict[str, Call] = {
        "segment_reduce": lambda: torch.segment_reduce(values, "max", offsets=offsets, unsafe=True),
        "scatter_reduce": lambda: scattered_max(values, ids, data.rows),
    }
    places = data.rows * data.dim * 4
    own = lambda: segment_max(values, *data.row_arguments)  # noqa: E731
    return OpCalls(_pool_bytes(data) + places, own, peers, {"max of padded, with places": in_rectangles})


def _maxima_backward(lab: Lab, data: RaggedData) -> OpCalls:
    grad, (_, at) = data.grad, segment_max(data.values, *data.row_arguments)
    own = lambda: segment_max_backward(grad, at, *data.row_arguments, data.events)  # noqa: E731
    reduced = backward_of(
        lambda values: torch.segment_reduce(values, "max", offsets=data.offsets, unsafe=True), data.values, grad
    )
    moved = _pool_bytes(data) + data.rows * data.dim * 4
    return OpCalls(moved, own, {"segment_reduce": reduced})


def _embeddings(lab: Lab, data: RaggedData) -> OpCalls:
    table, ids = _table(lab, data)
    offsets = data.offsets
    peers: dict[str, Call] = {
        "EmbeddingBag": lambda: functional.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True),
        "gather, then segment_reduce": lambda: torch.segment_reduce(table[ids], "mean", offsets=offsets, unsafe=True),
    }
    own = lambda: embedding_pool(table, ids, None, *data.row_arguments, True)  # noqa: E731
    entries = min(data.events, table.shape[0]) * data.dim * _FLOAT  # an entry that comes again may be in a cache
    rest = data.events * _ID + data.rows * data.dim * _FLOAT
    return OpCalls(entries + rest, own, peers, gathered_bytes=data.events * data.dim * _FLOAT + rest)


def _embeddings_backward(lab: Lab, data: RaggedData) -> OpCalls:
    table, ids = _table(lab, data)
    grad, offsets, items = data.grad, data.offsets, table.shape[0]
    giants = data.config.giants(data.events)
    own = lambda: embedding_pool_table_grad(  # noqa: E731
        grad, items, ids, None, offsets, giants, data.config.thresholds, True
    )
    bags = backward_of(
        lambda weight: functional.embedding_bag(ids, weight, offsets, mode="mean", include_last_offset=True),
        table,
        grad,
    )
    moved = (items + data.rows) * data.dim * _FLOAT + data.events * _ID
    return OpCalls(moved, own, {"EmbeddingBag": bags})


def _table(lab: Lab, data: RaggedData) -> tuple[Tensor, Tensor]:
    table = torch.randn(lab.sizes.items, data.dim, device=lab.device)
    return table, torch.randint(lab.sizes.items, (data.events,), device=lab.device)


def _attention(lab: Lab, data: RaggedData) -> OpCalls:
    scores, values = data.scores, data.values

    def in_rectangles() -> Call:
        padded = padded_attention(data)
        return lambda: padded.forward(padded.scores, padded.values)

    peers: dict[str, Call] = {"scatter": lambda: scattered_attention(scores, values, data)}
    own = lambda: attention_pool(scores, values, *data.row_arguments)  # noqa: E731
    moved = data.events * (data.dim + 1) * _FLOAT + data.rows * (data.dim + 2) * _FLOAT
    return OpCalls(moved, own, peers, {"pad and mask": in_rectangles})


def _attention_backward(lab: Lab, data: RaggedData) -> OpCalls:
    scores, values, grad = data.scores, data.values, data.grad
    forward = attention_pool(scores, values, *data.row_arguments)
    own = lambda: attention_pool_backward(grad, *forward, scores, values, *data.row_arguments)  # noqa: E731

    def in_rectangles() -> Call:
        padded = padded_attention(data)
        return backward_of(padded.forward, padded.scores, padded.values, grad)

    peers = {"scatter": backward_of(lambda s, v: scattered_attention(s, v, data), scores, values, grad)}
    moved = (2 * data.events * (data.dim + 1) + data.rows * (2 * data.dim + 2)) * _FLOAT
    return OpCalls(moved, own, peers, {"pad and mask": in_rectangles})


def _bins(lab: Lab, data: RaggedData) -> OpCalls:
    giants = data.config.giants(data.events)
    peers: dict[str, Call] = {"argsort of the lengths": lambda: data.offsets.diff().argsort(stable=True)}
    own = lambda: bin_rows(data.offsets, giants, data.config.thresholds)  # noqa: E731
    return OpCalls(2 * (data.rows + 1) * _ID + data.rows * 4, own, peers)


def _pool_bytes(data: RaggedData) -> int:
    """Every event once, every row once, and the offsets."""
    return (data.events + data.rows) * data.dim * _FLOAT + (data.rows + 1) * _ID


#: By name. Pooling embeddings needs ids alone, 8 B an event where values have 4 D; sorting them needs several of those.
OPS: dict[str, Op] = {
    "embedding_pool": Op(_embeddings, copies=0.2),
    "attention_pool": Op(_attention),
    "attention_pool_backward": Op(_attention_backward, copies=2),
    "segment_sum": Op(_sums),
    "jagged_to_padded": Op(_padding, rectangles=1),
    "padded_to_jagged": Op(_unpadding, copies=2, rectangles=1),
    "segment_max": Op(_maxima),
    "segment_sum_backward": Op(_spreads),
    "segment_max_backward": Op(_maxima_backward, copies=2),
    "embedding_pool_table_grad": Op(_embeddings_backward, copies=0.5),
    "bin_rows": Op(_bins, copies=0.1, is_like_peers=False),
}
