"""The rule "budget // mean length" beside a hard token budget: how far its batches go over, and what fills them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.edges import optimal_edges
from labkit.batching.fields import whole_number
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """One way to keep to a budget, over one epoch.

    Attributes:
        name: of the way.
        rows: rows a batch, where they are fixed.
        batches: batches of the epoch.
        median_slots, p95_slots, most_slots: slots of a batch.
        over_budget_share: batches above the budget / batches.
        overshoot: most slots / budget - 1 where that is above 0, else 0.
        padding_ratio: padded share of all slots.
    """

    name: str
    rows: int | None
    batches: int
    median_slots: float
    p95_slots: float
    most_slots: int
    over_budget_share: float
    overshoot: float
    padding_ratio: float


def compare_budget_rules(
    lengths: NDArray[np.int64], token_budget: int, *, buckets: int = 8, seed: int = 0
) -> tuple[BudgetUse, ...]:
    """Plan one epoch by the rule of thumb and by the strategies with a hard budget.

    Args:
        lengths: (N,) of the data set.
        token_budget: slots a batch; the longest length must fit.
        buckets: of ``bucket_budget``, with optimal edges.
        seed: of the shuffles.

    Returns:
        The rule (rows = budget // mean length, each batch padded to its own longest), ``bucket_budget``, ``jagged``.

    Raises:
        PolicyError: a budget below the longest length.

    Cost: three epoch plans.
    """
    token_budget = whole_number("token_budget", token_budget)
    histogram = LengthHistogram.from_lengths(lengths)
    rows = max(1, int(token_budget // max(1.0, histogram.mean)))
    edges = optimal_edges(histogram, buckets).edges
    ways = (
        ("budget // mean length", BatchPolicy(Strategy.PAD_BATCH, rows=rows)),
        ("bucket_budget", BatchPolicy(Strategy.BUCKET_BUDGET, bucket_edges=edges, token_budget=token_budget)),
        ("jagged", BatchPolicy(Strategy.JAGGED, token_budget=token_budget)),
    )
    return tuple(_use(name, lengths, policy, token_budget, seed) for name, policy in ways)


def _use(name: str, lengths: NDArray[np.int64], policy: BatchPolicy, budget: int, seed: int) -> BudgetUse:
    plan = plan_epoch(lengths, policy, seed=seed)
    slots = plan.batch_slots
    return BudgetUse(
        name=name,
        rows=policy.rows if policy.strategy is Strategy.PAD_BATCH else None,
        batches=len(plan),
        median_slots=float(np.median(slots)),
        p95_slots=float(np.quantile(slots, 0.95)),
        most_slots=plan.largest_batch_slots,
        over_budget_share=float(np.mean(slots > budget)),
        overshoot=max(0.0, plan.largest_batch_slots / budget - 1),
        padding_ratio=plan.padding_ratio,
    )
