"""Batches filled by real events (jagged layouts): the budget rule, and what it comes to on a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from labkit.batching.policy import BatchPolicy
from labkit.batching.renewal import rows_per_batch
from labkit.batching.truncation import cap_loss
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class JaggedFigures:
    """Figures of one epoch of event-budget batches.

    Attributes:
        kept_events: events that reach the model.
        sequences_truncated: sequences cut by the cap.
        batches: number of batches; an estimate unless ``batches_exact``.
        batches_exact: the number does not depend on the shuffle.
    """

    kept_events: int
    sequences_truncated: int
    batches: int | float
    batches_exact: bool


def check_fits(policy: BatchPolicy, longest: int, lengths: NDArray[np.integer] | None = None) -> None:
    """Refuse a sequence that alone is above the token budget.

    Raises:
        PolicyError: with the length, the budget and, where lengths are given, the index.
    """
    longest = longest if policy.max_length is None else min(longest, policy.max_length)
    if longest > policy.token_budget:
        where = "" if lengths is None else f" (index {int(np.argmax(lengths > policy.token_budget))})"
        raise PolicyError(
            f"longest length {longest}{where} is above token_budget {policy.token_budget}, so it fits no batch: "
            f"raise token_budget to {longest} or more, or set max_length."
        )


def jagged_figures(histogram: LengthHistogram, policy: BatchPolicy) -> JaggedFigures:
    """Score event-budget batches on a histogram. Cost: O(m), and the milliseconds of ``rows_per_batch``.

    Raises:
        PolicyError: a sequence above the token budget.
    """
    check_fits(policy, histogram.max)
    return _figures(histogram, policy.max_length, policy.token_budget, policy.max_rows)


@lru_cache(maxsize=8)  # the strategies that are filled by events differ in their layout, not in their batches
def _figures(histogram: LengthHistogram, cap: int | None, budget: int, max_rows: int) -> JaggedFigures:
    cut = cap_loss(histogram, cap)
    batches, exact = _batches(histogram.capped(cap), budget, max_rows)
    return JaggedFigures(cut.kept_events, cut.sequences_truncated, batches, exact)


def _batches(histogram: LengthHistogram, budget: int, max_rows: int) -> tuple[int | float, bool]:
    n, total, longest = histogram.sequences, histogram.events, histogram.max
    by_rows = -(-n // max_rows)
    if longest * min(max_rows, n) <= budget:  # the budget never closes a batch
        return by_rows, True
    if histogram.distinct == 1:
        return -(-n // min(budget // longest, max_rows)), True
    if total <= budget and n <= max_rows:
        return 1, True
    rows = rows_per_batch(histogram.values, histogram.counts, budget, max_rows)
    # the last batch is partial: half a batch more on average
    return max(n / rows + 0.5, float(by_rows), float(-(-total // budget))), False
