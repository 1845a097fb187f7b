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
from labkit.gpu_check.ragged_data import Law, RaggedData
from labkit.layouts.segments import row_ids
from labkit.layouts.segments import segment_max as scattered_max
from labkit.layouts.segments import segment_sum as scattered_sum

_FLOAT, _ID = 4, 8  # bytes

Call = Callable[[], object]


@dataclass(frozen=True, eq=False)
class OpCalls:
    """One op on one batch.

    Attributes:
        rows: B.
        events: T.
        floor_bytes: that must move at least once.
        own: the op.
        peers: the same by others, by name.
    """

    rows: int
    events: int
    floor_bytes: int
    own: Call
    peers: dict[str, Call] = field(default_factory=dict)


def _data(lab: Lab, law: Law, *, rectangles: float = 0.0, copies: float = 3.0) -> RaggedData:
    """As many rows as fit with so many rectangles and so many (T, D) arrays."""
    event = lab.sizes.dim * _FLOAT
    mean = (lab.sizes.longest + 1) / 2 if law is Law.UNIFORM else 0.06 * lab.sizes.longest
    rows = lab.fit(lab.sizes.rows, event * (rectangles * lab.sizes.longest + copies * mean))
    return RaggedData(lab, law, rows)


def _padding(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, rectangles=3)
    values, offsets, width = data.values, data.offsets, data.longest
    moved = (data.events + data.rows * width) * data.dim * _FLOAT + (data.rows + 1) * _ID
    nested = nested_of(values, data)
    peers: dict[str, Call] = {
        "nested.to_padded_tensor": lambda: nested.to_padded_tensor(0.0),
        "aten._jagged_to_padded_dense_forward": lambda: torch.ops.aten._jagged_to_padded_dense_forward(
            values, [offsets], [width], 0.0
        ),
        "gather and mask": lambda: padded_of(values, data),
    }
    peers |= fbgemm_op("jagged_to_padded_dense", values, [offsets], [width], 0.0)
    return OpCalls(data.rows, data.events, moved, lambda: jagged_to_padded(values, offsets, width, 0.0), peers)


def _unpadding(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, rectangles=2)
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
    return OpCalls(data.rows, events, moved, lambda: padded_to_jagged(padded, offsets, events, 0.0), peers)


def _sums(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, rectangles=1)
    values, offsets = data.values, data.offsets
    nested, ids, padded = nested_of(values, data), row_ids(offsets, data.events), padded_of(values, data)
    peers: dict[str, Call] = {
        "segment_reduce": lambda: torch.segment_reduce(values, "sum", offsets=offsets, unsafe=True),
        "index_add": lambda: scattered_sum(values, ids, data.rows),
        "sum of nested jagged": lambda: nested.sum(dim=1),
        "sum of padded": lambda: padded.sum(dim=1),
    }
    return OpCalls(
        data.rows, data.events, _pool_bytes(data), lambda: segment_sum(values, *data.row_arguments, False), peers
    )


def _spreads(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law)
    ids, lengths, grad = row_ids(data.offsets, data.events), data.offsets.diff(), data.grad
    peers: dict[str, Call] = {
        "gather by row": lambda: grad[ids],
        "repeat_interleave": lambda: grad.repeat_interleave(lengths, dim=0, output_size=data.events),
    }
    own = lambda: segment_sum_backward(grad, *data.row_arguments, data.events, False)  # noqa: E731
    return OpCalls(data.rows, data.events, _pool_bytes(data), own, peers)


def _maxima(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, rectangles=2)
    values, offsets, ids = data.values, data.offsets, row_ids(data.offsets, data.events)
    padded = padded_of(values, data, -torch.inf)
    peers: dict[str, Call] = {
        "segment_reduce": lambda: torch.segment_reduce(values, "max", offsets=offsets, unsafe=True),
        "scatter_reduce": lambda: scattered_max(values, ids, data.rows),
        "max of padded, with places": lambda: padded.max(dim=1),
    }
    places = data.rows * data.dim * 4
    own = lambda: segment_max(values, *data.row_arguments)  # noqa: E731
    return OpCalls(data.rows, data.events, _pool_bytes(data) + places, own, peers)


def _maxima_backward(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law)
    grad, (_, at) = data.grad, segment_max(data.values, *data.row_arguments)
    own = lambda: segment_max_backward(grad, at, *data.row_arguments, data.events)  # noqa: E731
    reduced = backward_of(
        lambda values: torch.segment_reduce(values, "max", offsets=data.offsets, unsafe=True), data.values, grad
    )
    moved = _pool_bytes(data) + data.rows * data.dim * 4
    return OpCalls(data.rows, data.events, moved, own, {"segment_reduce": reduced})


def _embeddings(lab: Lab, law: Law) -> OpCalls:
    data, table, ids = _table(lab, law)
    offsets = data.offsets
    peers: dict[str, Call] = {
        "EmbeddingBag": lambda: functional.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True),
        "gather, then segment_reduce": lambda: torch.segment_reduce(table[ids], "mean", offsets=offsets, unsafe=True),
    }
    own = lambda: embedding_pool(table, ids, None, *data.row_arguments, True)  # noqa: E731
    entries = min(data.events, table.shape[0]) * data.dim * _FLOAT  # an entry that comes again may be in a cache
    moved = entries + data.events * _ID + data.rows * data.dim * _FLOAT
    return OpCalls(data.rows, data.events, moved, own, peers)


def _embeddings_backward(lab: Lab, law: Law) -> OpCalls:
    data, table, ids = _table(lab, law)
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
    return OpCalls(data.rows, data.events, moved, own, {"EmbeddingBag": bags})


def _table(lab: Lab, law: Law) -> tuple[RaggedData, Tensor, Tensor]:
    data = _data(lab, law, copies=1.5)
    table = torch.randn(lab.sizes.items, data.dim, device=lab.device)
    return data, table, torch.randint(lab.sizes.items, (data.events,), device=lab.device)


def _attention(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, rectangles=1.5)
    scores, values, padded = data.scores, data.values, padded_attention(data)
    peers: dict[str, Call] = {
        "pad and mask": lambda: padded.forward(padded.scores, padded.values),
        "scatter": lambda: scattered_attention(scores, values, data),
    }
    own = lambda: attention_pool(scores, values, *data.row_arguments)  # noqa: E731
    moved = data.events * (data.dim + 1) * _FLOAT + data.rows * (data.dim + 2) * _FLOAT
    return OpCalls(data.rows, data.events, moved, own, peers)


def _attention_backward(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, rectangles=3)
    scores, values, grad = data.scores, data.values, data.grad
    forward = attention_pool(scores, values, *data.row_arguments)
    own = lambda: attention_pool_backward(grad, *forward, scores, values, *data.row_arguments)  # noqa: E731
    padded = padded_attention(data)
    peers = {
        "pad and mask": backward_of(padded.forward, padded.scores, padded.values, grad),
        "scatter": backward_of(lambda s, v: scattered_attention(s, v, data), scores, values, grad),
    }
    moved = (2 * data.events * (data.dim + 1) + data.rows * (2 * data.dim + 2)) * _FLOAT
    return OpCalls(data.rows, data.events, moved, own, peers)


def _bins(lab: Lab, law: Law) -> OpCalls:
    data = _data(lab, law, copies=0.1)
    giants = data.config.giants(data.events)
    peers: dict[str, Call] = {"argsort of the lengths": lambda: data.offsets.diff().argsort(stable=True)}
    own = lambda: bin_rows(data.offsets, giants, data.config.thresholds)  # noqa: E731
    return OpCalls(data.rows, data.events, 2 * (data.rows + 1) * _ID + data.rows * 4, own, peers)


def _pool_bytes(data: RaggedData) -> int:
    """Every event once, every row once, and the offsets."""
    return (data.events + data.rows) * data.dim * _FLOAT + (data.rows + 1) * _ID


OP_CALLS: dict[str, Callable[[Lab, Law], OpCalls]] = {
    "embedding_pool": _embeddings,
    "attention_pool": _attention,
    "attention_pool_backward": _attention_backward,
    "segment_sum": _sums,
    "jagged_to_padded": _padding,
    "padded_to_jagged": _unpadding,
    "segment_max": _maxima,
    "segment_sum_backward": _spreads,
    "segment_max_backward": _maxima_backward,
    "embedding_pool_table_grad": _embeddings_backward,
    "bin_rows": _bins,
}
