"""what_if: what a policy costs on a histogram of lengths, in O(distinct lengths), before any batch is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.batching.events import jagged_figures
from labkit.batching.group_figures import GroupFigures, group_figures
from labkit.batching.groups import Groups, resolve_groups
from labkit.batching.policy import BatchPolicy, PadTo
from labkit.batching.strategies import Batching
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin

_EXPECTED = "exact expectation over shuffles: batches are padded to their own longest row"
_DROPPED = "expectation over shuffles: drop_last leaves out whichever rows come last"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What one epoch under a policy looks like. Every figure has its origin in ``provenance``.

    ``kept_events + events_lost`` is the number of events of the data set.

    Attributes:
        policy: the policy that was scored.
        sequences: sequences of the data set.
        events: events of the data set.
        padding_ratio: 1 - kept_events / slots, 0 without slots; ghost rows count.
        slots: cells of all padded rectangles of an epoch (jagged: the events themselves).
        kept_events: events that reach the model.
        events_lost: events cut by a cap, a width or an edge, or dropped with their sequence.
        sequences_truncated: sequences that lose a part of their events.
        sequences_dropped: sequences left out whole.
        batches: batches of an epoch.
        shapes: distinct (rows, width) shapes of the batches.
        ghost_rows: empty rows added for static shapes.
        largest_batch_slots: slots of the largest batch.
        batches_over_budget: batches of a single row wider than the token budget.
        groups: the same by bucket, short to long (one for the strategies without buckets, none for jagged).
        provenance: origin of each figure, by field name.
        reason: why a figure is not exact, by field name.
    """

    policy: BatchPolicy
    sequences: int
    events: int
    padding_ratio: float
    slots: int | float
    kept_events: int | float
    events_lost: int | float
    sequences_truncated: int | float
    sequences_dropped: int
    batches: int | float
    shapes: int
    ghost_rows: int
    largest_batch_slots: int
    batches_over_budget: int
    groups: tuple[GroupFigures, ...] = ()
    provenance: dict[str, Origin] = field(default_factory=dict)
    reason: dict[str, str] = field(default_factory=dict)

    @property
    def truncated_share(self) -> float:
        """Users who lose events, by truncation or with their whole sequence, as a share of all."""
        return (self.sequences_truncated + self.sequences_dropped) / self.sequences

    @property
    def lost_share(self) -> float:
        """Events lost as a share of all, 0 without events; always shown beside ``truncated_share``."""
        return self.events_lost / self.events if self.events else 0.0


#: The fields of ``WhatIf`` that are figures.
FIGURES = (
    "padding_ratio",
    "slots",
    "kept_events",
    "events_lost",
    "sequences_truncated",
    "sequences_dropped",
    "batches",
    "shapes",
    "ghost_rows",
    "largest_batch_slots",
    "batches_over_budget",
)


def what_if(histogram: LengthHistogram, policy: BatchPolicy) -> WhatIf:
    """Score a policy on a histogram: the figures of one epoch, exact wherever they do not depend on the shuffle.

    Equal to ``plan_epoch`` to the last digit in batches, slots (``pad_to='edge'``), ghost rows, truncated and dropped
    sequences and lost events. ``pad_batch`` and ``pad_to='batch_max'``: slots are the exact expectation over shuffles.
    ``jagged``: the number of batches is an estimate.

    Raises:
        PolicyError: the policy does not fit these lengths (overflow, budget).

    Cost: O(K log m), plus O(m) where batches are padded to their own maximum; no pass over the sequences.
    """
    if policy.spec.batching is Batching.EVENT_BUDGET:
        return _jagged(histogram, policy)
    groups = resolve_groups(policy, histogram)
    figures = group_figures(groups, histogram)
    return _sum_up(histogram, policy, groups, figures)


def _sum_up(
    histogram: LengthHistogram, policy: BatchPolicy, groups: Groups, figures: tuple[GroupFigures, ...]
) -> WhatIf:
    slots = sum(g.slots for g in figures)
    kept = sum(g.kept_events for g in figures)
    last_dropped = sum(g.sequences_dropped for g in figures)
    overflow_dropped = histogram.sequences - sum(g.sequences for g in figures)
    provenance = dict.fromkeys(FIGURES, Origin.EXACT)
    reason: dict[str, str] = {}
    if groups.pad_to is PadTo.BATCH_MAX:
        _mark(provenance, reason, ("slots", "padding_ratio"), _EXPECTED, Origin.EXACT)
        _mark(provenance, reason, ("shapes",), "upper bound: the widths depend on the shuffle")
        _mark(provenance, reason, ("largest_batch_slots",), "upper bound: rows x longest")
    if last_dropped:
        _mark(provenance, reason, ("padding_ratio", "kept_events", "events_lost", "sequences_truncated"), _DROPPED)
    return WhatIf(
        policy=policy,
        sequences=histogram.sequences,
        events=histogram.events,
        padding_ratio=max(0.0, 1 - kept / slots) if slots else 0.0,
        slots=slots,
        kept_events=kept,
        events_lost=histogram.events - kept,
        sequences_truncated=sum(g.sequences_truncated for g in figures),
        sequences_dropped=overflow_dropped + last_dropped,
        batches=sum(g.batches for g in figures),
        shapes=_shapes(groups, figures),
        ghost_rows=sum(g.ghost_rows for g in figures),
        largest_batch_slots=max(g.largest_batch_slots for g in figures),
        batches_over_budget=sum(g.batches for g in figures if g.over_budget),
        groups=figures,
        provenance=provenance,
        reason=reason,
    )


def _shapes(groups: Groups, figures: tuple[GroupFigures, ...]) -> int:
    """Distinct (rows, width): exact for ``pad_to='edge'``, else an upper bound."""
    if groups.pad_to is PadTo.BATCH_MAX:
        return sum(min(g.batches, g.distinct_widths + 1) for g in figures)
    shapes = set()
    for g in figures:
        if g.batches > 1 or (g.batches and g.ghost_rows):
            shapes.add((g.rows, g.width))
        if g.batches and not g.ghost_rows:
            shapes.add((g.last_rows, g.width))
    return len(shapes)


def _jagged(histogram: LengthHistogram, policy: BatchPolicy) -> WhatIf:
    f = jagged_figures(histogram, policy)
    provenance = dict.fromkeys(FIGURES, Origin.EXACT)
    reason: dict[str, str] = {}
    if not f.batches_exact:
        _mark(provenance, reason, ("batches",), "estimate by renewal theory: it depends on the shuffle")
    _mark(provenance, reason, ("shapes",), "estimate: every batch has its own rows and events, one shape a batch")
    _mark(provenance, reason, ("largest_batch_slots",), "upper bound: the token budget")
    return WhatIf(
        policy=policy,
        sequences=histogram.sequences,
        events=histogram.events,
        padding_ratio=0.0,
        slots=f.kept_events,
        kept_events=f.kept_events,
        events_lost=histogram.events - f.kept_events,
        sequences_truncated=f.sequences_truncated,
        sequences_dropped=0,
        batches=f.batches,
        shapes=-int(-f.batches // 1),
        ghost_rows=0,
        largest_batch_slots=min(policy.token_budget, f.kept_events),
        batches_over_budget=0,
        provenance=provenance,
        reason=reason,
    )


def _mark(
    provenance: dict[str, Origin],
    reason: dict[str, str],
    names: tuple[str, ...],
    why: str,
    origin: Origin = Origin.MODELLED,
) -> None:
    for name in names:
        # an expectation of an expectation is still not exact: never turn modelled back
        if provenance[name] is Origin.EXACT:
            provenance[name] = origin
        reason[name] = why if name not in reason else f"{reason[name]}; {why}"
