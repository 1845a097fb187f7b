"""Hypothesis strategies: lengths, and policies that fit them, with every field that their strategy uses."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from tests.batching import naive

LENGTHS = st.lists(st.integers(0, 12) | st.integers(0, 300), min_size=1, max_size=50)
#: Few distinct lengths, so that ties and full buckets are the rule.
FEW = st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 9]), min_size=1, max_size=50)


@st.composite
def policies(draw: st.DrawFn, lengths: list[int], strategies: tuple[str, ...] = tuple(Strategy)) -> BatchPolicy:
    """A policy of one of the strategies that fits the lengths."""
    strategy = Strategy(draw(st.sampled_from(strategies)))
    fields = STRATEGIES[strategy].fields
    values: dict[str, Any] = {
        "rows": draw(st.integers(1, 12)),
        "max_length": draw(st.none() | st.integers(1, 12) | st.integers(1, 320)),
        "length_multiple": draw(st.sampled_from([1, 1, 2, 7, 8])),
        "shuffle": draw(st.booleans()),
        "drop_last": draw(st.booleans()),
    }
    if STRATEGIES[strategy].batching is Batching.BUCKETS:
        values |= draw(_bucket_fields(lengths, strategy, values))
    if STRATEGIES[strategy].batching is Batching.PACKS:
        values |= draw(_pack_fields(lengths, values))
    if STRATEGIES[strategy].batching is Batching.EVENT_BUDGET:
        cap = values["max_length"] or max(lengths)
        longest = max(1, min(cap, max(lengths)))
        values["token_budget"] = draw(st.integers(longest, longest * 4) | st.integers(longest, longest * 60))
        values["max_rows"] = draw(st.integers(1, 60))
    return BatchPolicy(strategy, **{name: value for name, value in values.items() if name in fields})


@st.composite
def _pack_fields(draw: st.DrawFn, lengths: list[int], given: dict[str, Any]) -> dict[str, Any]:
    longest = max(lengths) if given["max_length"] is None else min(max(lengths), given["max_length"])
    overflow = draw(st.sampled_from(["error", "truncate", "split", "split", "drop"]))
    least = max(1, longest) if overflow == "error" else 1
    return {
        "overflow": overflow,
        "capacity": draw(st.none() | st.integers(least, max(least, 12)) | st.integers(least, max(least, 400))),
        "max_sequences_per_pack": draw(st.none() | st.none() | st.integers(1, 6)),
    }


@st.composite
def _bucket_fields(draw: st.DrawFn, lengths: list[int], strategy: Strategy, given: dict[str, Any]) -> dict[str, Any]:
    edges = sorted(draw(st.sets(st.integers(1, 12) | st.integers(1, 310), min_size=1, max_size=6)))
    overflow = draw(st.sampled_from(["error", "truncate", "drop"]))
    longest = max(lengths) if given["max_length"] is None else min(max(lengths), given["max_length"])
    if overflow == "error" and edges[-1] < longest:
        edges.append(longest)
    widths = draw(st.none() | st.tuples(*[st.integers(1, edge) for edge in edges]))
    static = draw(st.sampled_from([None, True] if strategy is Strategy.BUCKET_GRAPH else [None, True, False]))
    still = static or strategy is Strategy.BUCKET_GRAPH
    widest = naive.up(edges[-1], given["length_multiple"])
    oversize = draw(st.sampled_from(["error", "single_row"]))
    least = widest if oversize == "error" else 1
    return {
        "bucket_edges": tuple(edges),
        "bucket_widths": widths,
        "overflow": overflow,
        "static_shapes": static,
        "pad_to": "edge" if still else draw(st.sampled_from(["edge", "batch_max"])),
        "batch_order": draw(st.sampled_from(["shuffled", "grouped"])),
        "oversize": oversize,
        "token_budget": draw(st.integers(least, max(least, widest * 2)) | st.integers(least, widest * 20)),
        "row_multiple": draw(st.sampled_from([1, 1, 2, 3, 8])),
    }
