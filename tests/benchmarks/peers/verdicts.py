"""When a bar is met. Nothing to compare with is not met: a peer that does not load must not make labkit look good."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.benchmarks.peers.fairness import BatchFigures

#: Bar of the planning table: the fastest peer takes so many times the seconds of labkit.
TIMES_FASTER = 20


def never_above(curve: Sequence[int], peers: Mapping[str, tuple[int, int]]) -> bool:
    """Whether no peer has fewer slots than labkit with as many edges.

    Args:
        curve: labkit's slots with 1, 2, ... K edges.
        peers: number of edges that are left, and slots, of each.
    """
    return bool(peers) and all(curve[min(edges, len(curve)) - 1] <= slots for edges, slots in peers.values())


def keeps_its_word(figures: BatchFigures, budget: int | None) -> bool:
    """Whether every sequence is in exactly one batch, and no batch is over the budget."""
    return figures.covers and (budget is None or figures.over(budget) == 0)


def fast_enough(ratios: Sequence[float], least: float = TIMES_FASTER) -> bool:
    """Whether even the fastest of the peers takes ``least`` times as long."""
    return bool(ratios) and all(math.isfinite(ratio) and ratio >= least for ratio in ratios)


def no_more_packs(own: int, other: int | None) -> bool:
    return other is not None and own <= other
