"""What ``labkit tune`` does: the bucket edges and the cap with the fewest slots within a share of events lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.batching.costs import parse_cost
from labkit.batching.edge_charges import checked_number
from labkit.batching.edges import Edges, optimal_edges
from labkit.batching.fields import choice, whole_number
from labkit.batching.finite_edges import finite_steps, optimal_edges_finite
from labkit.batching.objective import Objective
from labkit.batching.policy import DEFAULT_TOKEN_BUDGET, BatchPolicy, Overflow
from labkit.batching.strategies import Strategy
from labkit.batching.truncation import lowest_cap
from labkit.batching.what_if import WhatIf, what_if
from labkit.errors import PolicyError
from labkit.experiments.lineup import DEFAULT_BUCKETS
from labkit.experiments.what_if_report import lengths_record, strategy_record
from labkit.lengths.histogram import LengthHistogram

if TYPE_CHECKING:
    from labkit.config.tuned import TunedConfig

#: Up to so many steps the ghost rows of static shapes are counted: 4096 distinct lengths and 8 buckets, 0.2 seconds.
FINITE_STEPS = 2**27


@dataclass(frozen=True, slots=True)
class Limits:
    """What the search must stay within, and what it makes least of.

    Attributes:
        max_buckets: most bucket edges, >= 1.
        token_budget: most slots of a batch.
        max_events_lost: share of the events that a cap may cut, 0 .. 1; 0 is no cap.
        length_multiple: what padded widths are rounded up to.
        strategy: ``bucket_budget`` or ``bucket_graph``.
        edge_cost: what a row costs: ``slots``, ``attention`` or ``attention:ALPHA``.
        charge_per_bucket: what one more bucket must save, in the unit of the row cost, over an epoch.
    """

    max_buckets: int = DEFAULT_BUCKETS
    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_events_lost: float = 0.0
    length_multiple: int = 1
    strategy: Strategy = Strategy.BUCKET_BUDGET
    edge_cost: str = "slots"
    charge_per_bucket: int | float = 0

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing."""
        for name in ("max_buckets", "token_budget", "length_multiple"):
            whole_number(name, getattr(self, name))
        if choice("strategy", self.strategy, Strategy) not in (Strategy.BUCKET_BUDGET, Strategy.BUCKET_GRAPH):
            raise PolicyError(f"tune searches bucket_budget or bucket_graph: got {self.strategy}.")
        parse_cost(self.edge_cost)
        checked_number("charge_per_bucket", self.charge_per_bucket)
        if not 0 <= self.max_events_lost <= 1:  # NaN too
            raise PolicyError(f"max_events_lost must be a share within 0 .. 1: got {self.max_events_lost:g}.")


@dataclass(frozen=True, slots=True)
class Found:
    """The policy that was found.

    Attributes:
        histogram: the lengths.
        limits: what was asked.
        edges: its bucket edges, with the curve of slots against the number of buckets.
        what_if: what it costs; ``what_if.policy`` is the policy.
    """

    histogram: LengthHistogram
    limits: Limits
    edges: Edges
    what_if: WhatIf

    def tuned_config(self) -> TunedConfig:
        """What a training job loads."""
        from labkit.config.tuned import TunedConfig  # not at the top: it brings pydantic

        return TunedConfig.from_policy(self.histogram, self.what_if.policy)


def tune(histogram: LengthHistogram, limits: Limits) -> Found:
    """Search a bucket strategy: the lowest cap within ``max_events_lost``, then the edges with the fewest slots.

    For ``bucket_graph`` the ghost rows count, up to ``FINITE_STEPS`` (buckets times distinct lengths squared); above,
    the edges are those of endless data.

    The policy truncates what is longer than its last edge. On these lengths nothing is, beyond the cap itself; on those
    of tomorrow a longer user loses the oldest events instead of stopping the job, and the sampler warns with the count.

    Raises:
        PolicyError: a limit that means nothing, or a token budget below the widest bucket.

    Cost: that of ``optimal_edges``, or of ``optimal_edges_finite`` within ``FINITE_STEPS``.
    """
    cap = lowest_cap(histogram, limits.max_events_lost)
    capped = histogram.capped(cap)
    width = -(-max(1, capped.max) // limits.length_multiple) * limits.length_multiple
    if width > limits.token_budget:
        raise PolicyError(
            f"the widest bucket has {width} slots a row, above token_budget {limits.token_budget}: "
            f"raise token_budget to {width} or more, or allow a lower cap with max_events_lost."
        )
    policy = BatchPolicy(
        limits.strategy,
        bucket_edges=(max(1, capped.max),),
        token_budget=limits.token_budget,
        max_length=cap,
        overflow=Overflow.TRUNCATE,
        length_multiple=limits.length_multiple,
    )
    edges = _edges(capped, limits, policy)
    return Found(histogram, limits, edges, what_if(histogram, replace(policy, bucket_edges=edges.edges)))


def _edges(capped: LengthHistogram, limits: Limits, policy: BatchPolicy) -> Edges:
    """The best edges of the policy; without ghost rows slots do not depend on how rows are batched."""
    cost, buckets = parse_cost(limits.edge_cost), limits.max_buckets
    if policy.has_static_shapes and finite_steps(capped, buckets) <= FINITE_STEPS:
        objective = Objective(per_bucket=limits.charge_per_bucket)
        return optimal_edges_finite(capped, buckets, policy, objective=objective, cost=cost)
    return optimal_edges(
        capped,
        buckets,
        cost=cost,
        length_multiple=limits.length_multiple,
        charge_per_bucket=limits.charge_per_bucket,
    )


def tune_report(found: Found, tuned: TunedConfig, out: Path) -> dict[str, Any]:
    """What ``labkit tune --json`` prints."""
    return {
        "lengths": lengths_record(found.histogram),
        "max_buckets": found.limits.max_buckets,
        "max_events_lost": found.limits.max_events_lost,
        "bucket_edges": list(found.edges.edges),
        "max_length": found.what_if.policy.max_length,
        "truncated_share": found.what_if.truncated_share,
        "lost_share": found.what_if.lost_share,
        "max_truncated_share": tuned.max_truncated_share,
        "edge_cost": found.limits.edge_cost,
        "charge_per_bucket": found.limits.charge_per_bucket,
        "slots_by_buckets": list(found.edges.curve or ()) if found.limits.edge_cost == "slots" else None,
        "cost_by_buckets": list(found.edges.curve or ()),
        "strategies": [strategy_record(found.what_if)],
        "fingerprint": tuned.fingerprint,
        "out": str(out),
    }
