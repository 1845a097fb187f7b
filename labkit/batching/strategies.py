"""The table of strategies: each is a way of batching x a layout x a way of launching, and the policy fields it uses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Strategy(StrEnum):
    """The key of a strategy, as written in JSON and on the command line."""

    PAD_MAX = "pad_max"
    PAD_RECENT = "pad_recent"
    PAD_BATCH = "pad_batch"
    BUCKET_ROWS = "bucket_rows"
    BUCKET_BUDGET = "bucket_budget"
    BUCKET_GRAPH = "bucket_graph"
    PACKED = "packed"
    RNN_PACKED = "rnn_packed"
    JAGGED = "jagged"
    SEGMENTED = "segmented"
    SPARSE = "sparse"


class Batching(StrEnum):
    """How sequences are grouped into batches."""

    FIXED_ROWS = "fixed rows"  # shuffled, the same number of rows a batch
    BUCKETS = "buckets"  # rows of one length bucket together
    PACKS = "packs"  # several sequences share one row of a fixed capacity
    EVENT_BUDGET = "event budget"  # shuffled, filled up to a number of real events


class Layout(StrEnum):
    """The shape of the data that a model gets."""

    PADDED = "padded"  # (B, L) rectangle + lengths
    JAGGED = "jagged"  # values + offsets
    SEGMENTED = "segmented"  # the same, and which rows are short, medium, long or giant
    PACKED_ROWS = "packed_rows"  # (B, capacity) rows of several sequences + positions and block-diagonal mask
    PACKED_SEQUENCE = "packed_sequence"  # torch's PackedSequence, sorted inside the collate
    SPARSE = "sparse"  # COO/CSR


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """What a strategy is.

    Attributes:
        strategy: its key.
        title: a few words for people.
        batching: how sequences are grouped.
        layout: what the model gets.
        launch: how the work is launched.
        fields: the fields of ``BatchPolicy`` that it uses; only these are validated.
    """

    strategy: Strategy
    title: str
    batching: Batching
    layout: Layout
    launch: str
    fields: frozenset[str]


_EDGES = ("bucket_edges", "bucket_widths", "max_length", "overflow", "pad_to", "static_shapes", "batch_order")
_BUDGET = (*_EDGES, "token_budget", "oversize", "row_multiple")
_EVENTS = ("token_budget", "max_rows", "max_length", "shuffle")
_PADDED = ("length_multiple", "shuffle", "drop_last")


def _spec(
    strategy: Strategy,
    title: str,
    batching: Batching,
    *fields: str,
    layout: Layout = Layout.PADDED,
    launch: str = "eager",
) -> StrategySpec:
    return StrategySpec(strategy, title, batching, layout, launch, frozenset(fields))


STRATEGIES: dict[Strategy, StrategySpec] = {
    s.strategy: s
    for s in (
        _spec(Strategy.PAD_MAX, "pad to the longest of all", Batching.FIXED_ROWS, "rows", *_PADDED),
        _spec(
            Strategy.PAD_RECENT,
            "most recent, padded to the cap",
            Batching.FIXED_ROWS,
            "rows",
            "max_length",
            *_PADDED,
        ),
        _spec(Strategy.PAD_BATCH, "pad to the batch's longest", Batching.FIXED_ROWS, "rows", "max_length", *_PADDED),
        _spec(Strategy.BUCKET_ROWS, "buckets, fixed rows", Batching.BUCKETS, "rows", *_EDGES, *_PADDED),
        _spec(Strategy.BUCKET_BUDGET, "buckets, token budget", Batching.BUCKETS, *_BUDGET, *_PADDED),
        _spec(
            Strategy.BUCKET_GRAPH,
            "buckets, static shapes",
            Batching.BUCKETS,
            *_BUDGET,
            *_PADDED,
            launch="one CUDA graph a bucket",
        ),
        _spec(
            Strategy.PACKED,
            "several sequences a row",
            Batching.PACKS,
            "rows",
            "capacity",
            "max_sequences_per_pack",
            "max_length",
            "overflow",
            *_PADDED,
            layout=Layout.PACKED_ROWS,
        ),
        _spec(
            Strategy.RNN_PACKED,
            "PackedSequence, sorted in the batch",
            Batching.FIXED_ROWS,
            "rows",
            "max_length",
            "shuffle",
            "drop_last",
            layout=Layout.PACKED_SEQUENCE,
        ),
        _spec(Strategy.JAGGED, "values and offsets, no padding", Batching.EVENT_BUDGET, *_EVENTS, layout=Layout.JAGGED),
        _spec(
            Strategy.SEGMENTED,
            "values and offsets, kernels by length",
            Batching.EVENT_BUDGET,
            *_EVENTS,
            layout=Layout.SEGMENTED,
            launch="CuPy RawKernels by length",
        ),
        _spec(
            Strategy.SPARSE,
            "sparse matrix, no padding",
            Batching.EVENT_BUDGET,
            *_EVENTS,
            layout=Layout.SPARSE,
            launch="torch's sparse library",
        ),
    )
}
