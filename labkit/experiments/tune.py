"""What ``labkit tune`` does: the bucket edges and the cap with the fewest slots within a share of events lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.batching.edges import Edges, optimal_edges
from labkit.batching.fields import whole_number
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


@dataclass(frozen=True, slots=True)
class Limits:
    """What the search must stay within.

    Attributes:
        max_buckets: most bucket edges, >= 1.
        token_budget: most slots of a batch.
        max_events_lost: share of the events that a cap may cut, 0 .. 1; 0 is no cap.
        length_multiple: what padded widths are rounded up to.
    """

    max_buckets: int = DEFAULT_BUCKETS
    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_events_lost: float = 0.0
    length_multiple: int = 1

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing."""
        for name in ("max_buckets", "token_budget", "length_multiple"):
            whole_number(name, getattr(self, name))
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
    """Search ``bucket_budget``: the lowest cap within ``max_events_lost``, then the edges with the fewest slots.

    The policy truncates what is longer than its last edge. On these lengths nothing is, beyond the cap itself; on those
    of tomorrow a longer user loses the oldest events instead of stopping the job, and the sampler warns with the count.

    Raises:
        PolicyError: a limit that means nothing, or a token budget below the widest bucket.

    Cost: that of ``optimal_edges``.
    """
    cap = lowest_cap(histogram, limits.max_events_lost)
    capped = histogram.capped(cap)
    width = -(-max(1, capped.max) // limits.length_multiple) * limits.length_multiple
    if width > limits.token_budget:
        raise PolicyError(
            f"the widest bucket has {width} slots a row, above token_budget {limits.token_budget}: "
            f"raise token_budget to {width} or more, or allow a lower cap with max_events_lost."
        )
    edges = optimal_edges(capped, limits.max_buckets, length_multiple=limits.length_multiple)
    policy = BatchPolicy(
        Strategy.BUCKET_BUDGET,
        bucket_edges=edges.edges,
        token_budget=limits.token_budget,
        max_length=cap,
        overflow=Overflow.TRUNCATE,
        length_multiple=limits.length_multiple,
    )
    return Found(histogram, limits, edges, what_if(histogram, policy))


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
        "slots_by_buckets": list(found.edges.curve or ()),
        "strategies": [strategy_record(found.what_if)],
        "fingerprint": tuned.fingerprint,
        "out": str(out),
    }
