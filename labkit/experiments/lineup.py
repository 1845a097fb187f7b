"""Lineup: one set of settings and the policy that each strategy makes of it, to compare all on equal terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from labkit.batching.costs import parse_cost
from labkit.batching.edges import Edges, equal_quantile_edges, optimal_edges, quantile_edges, quantile_p95_edges
from labkit.batching.fields import choice, whole_number
from labkit.batching.policy import (
    DEFAULT_MAX_ROWS,
    DEFAULT_ROWS,
    DEFAULT_TOKEN_BUDGET,
    BatchPolicy,
    Overflow,
    Oversize,
    PadTo,
)
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH

DEFAULT_BUCKETS = 8


class EdgesBy(StrEnum):
    """How bucket edges are found."""

    OPTIMAL = "optimal"
    QUANTILE = "quantile"
    QUANTILE_P95 = "quantile_p95"


_SHARED = (
    "rows",
    "token_budget",
    "max_rows",
    "max_length",
    "overflow",
    "oversize",
    "pad_to",
    "row_multiple",
    "length_multiple",
    "capacity",
    "max_sequences_per_pack",
)


@dataclass(frozen=True, slots=True)
class Lineup:
    """Settings shared by all strategies; each takes the fields that it uses.

    Attributes:
        buckets: most buckets, where edges are computed.
        edges_by: how they are computed.
        quantiles: of the edges, for ``quantile`` and ``quantile_p95``; None: 1/K .. K/K, and 1/K .. (K-1)/K.
        edge_cost: what optimal edges make least of: ``slots``, ``attention`` or ``attention:ALPHA``.
        bucket_edges: given edges, which win over all of the above.
        bucket_widths: given widths, with given edges only.
        rows, token_budget, max_rows, max_length, overflow, oversize, pad_to, row_multiple, length_multiple, capacity,
            max_sequences_per_pack: as in ``BatchPolicy``. ``overflow='split'`` is what ``packed`` does; to the other
            strategies, which cannot, it is ``error``: what was to be kept whole is never cut in silence.
    """

    buckets: int = DEFAULT_BUCKETS
    edges_by: EdgesBy = EdgesBy.OPTIMAL
    quantiles: tuple[float, ...] | None = None
    edge_cost: str = "slots"
    bucket_edges: tuple[int, ...] | None = None
    bucket_widths: tuple[int, ...] | None = None
    rows: int = DEFAULT_ROWS
    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_rows: int = DEFAULT_MAX_ROWS
    max_length: int | None = None
    overflow: Overflow = Overflow.ERROR
    oversize: Oversize = Oversize.ERROR
    pad_to: PadTo = PadTo.EDGE
    row_multiple: int = 1
    length_multiple: int = 1
    capacity: int | None = None
    max_sequences_per_pack: int | None = None

    def edges(self, histogram: LengthHistogram) -> Edges:
        """The bucket edges on these lengths, computed on capped lengths unless they are given."""
        if self.bucket_edges is not None:
            return Edges(edges=self.bucket_edges, widths=self.bucket_widths, asked=len(self.bucket_edges))
        if self.max_length is not None:
            whole_number("max_length", self.max_length, most=MAX_LENGTH)
        capped = histogram.capped(self.max_length)
        match choice("edges_by", self.edges_by, EdgesBy):
            case EdgesBy.OPTIMAL:
                cost = parse_cost(self.edge_cost)
                return optimal_edges(capped, self.buckets, cost=cost, length_multiple=self.length_multiple)
            case EdgesBy.QUANTILE:
                return (
                    equal_quantile_edges(capped, self.buckets)
                    if self.quantiles is None
                    else quantile_edges(capped, self.quantiles)
                )
            case EdgesBy.QUANTILE_P95:
                inner = self.quantiles or tuple(k / self.buckets for k in range(1, self.buckets))
                return quantile_p95_edges(capped, inner)

    def policy(self, strategy: Strategy, edges: Edges | None) -> BatchPolicy:
        """The policy of one strategy; ``edges`` may be None for those without buckets."""
        values = {name: getattr(self, name) for name in _SHARED}
        if edges is not None:
            values |= {"bucket_edges": edges.edges, "bucket_widths": edges.widths}
        if strategy is Strategy.BUCKET_GRAPH:
            values["pad_to"] = PadTo.EDGE  # a graph replays one shape
        if strategy is not Strategy.PACKED and self.overflow == Overflow.SPLIT:
            values["overflow"] = Overflow.ERROR
        used = STRATEGIES[strategy].fields
        return BatchPolicy(strategy, **{name: value for name, value in values.items() if name in used})


def policies(
    histogram: LengthHistogram, lineup: Lineup, strategies: Iterable[Strategy | str] = tuple(Strategy)
) -> tuple[BatchPolicy, ...]:
    """The policies of the strategies asked for; edges are computed once, and only if a bucket strategy is among them.

    Raises:
        PolicyError, EdgesError: a setting that one of these strategies uses is wrong, or a strategy does not exist.
    """
    keys = [choice("strategy", s, Strategy) for s in strategies]
    needs_edges = any(STRATEGIES[k].batching is Batching.BUCKETS for k in keys)
    edges = lineup.edges(histogram) if needs_edges else None
    return tuple(lineup.policy(k, edges) for k in keys)
