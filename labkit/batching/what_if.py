"""what_if: what a policy costs on a histogram of lengths, in O(distinct lengths), before any batch is made."""

from __future__ import annotations

from labkit.batching.events import jagged_figures
from labkit.batching.figures import FIGURES as FIGURES
from labkit.batching.figures import WhatIf as WhatIf
from labkit.batching.figures import mark
from labkit.batching.group_figures import GroupFigures, group_figures
from labkit.batching.groups import Groups, resolve_groups
from labkit.batching.pack_what_if import packed_what_if
from labkit.batching.policy import BatchPolicy, PadTo
from labkit.batching.row_what_if import row_what_if
from labkit.batching.strategies import Batching, Layout
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin

_EXPECTED = "exact expectation over shuffles: batches are padded to their own longest row"
_DROPPED = "expectation over shuffles: drop_last leaves out whichever rows come last"


def what_if(histogram: LengthHistogram, policy: BatchPolicy) -> WhatIf:
    """Score a policy on a histogram: the figures of one epoch, exact wherever they do not depend on the shuffle.

    Equal to ``plan_epoch`` to the last digit in batches, slots (``pad_to='edge'``), ghost rows, truncated and dropped
    sequences and lost events. ``pad_batch`` and ``pad_to='batch_max'``: slots are the exact expectation over shuffles.
    ``jagged``, ``segmented``, ``sparse``: the number of batches is an estimate.

    Raises:
        PolicyError: the policy does not fit these lengths (overflow, budget).

    Cost: O(K log m), plus O(m) where batches are padded to their own maximum, and that of ``pack`` for ``packed``;
        no pass over the sequences.
    """
    if policy.spec.batching is Batching.EVENT_BUDGET:
        return _jagged(histogram, policy)
    if policy.spec.batching is Batching.PACKS:
        return packed_what_if(histogram, policy)
    if policy.spec.layout is Layout.PACKED_SEQUENCE:
        return row_what_if(histogram, policy)
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
        mark(provenance, reason, ("slots", "padding_ratio"), _EXPECTED, Origin.EXACT)
        mark(provenance, reason, ("shapes",), "upper bound: the widths depend on the shuffle")
        mark(provenance, reason, ("largest_batch_slots",), "upper bound: rows x longest")
    if last_dropped:
        mark(provenance, reason, ("padding_ratio", "kept_events", "events_lost", "sequences_truncated"), _DROPPED)
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
        batches_over_budget=sum(g.batches_over_budget for g in figures),
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
        mark(provenance, reason, ("batches",), "estimate by renewal theory: it depends on the shuffle")
    mark(provenance, reason, ("shapes",), "estimate: every batch has its own rows and events, one shape a batch")
    mark(provenance, reason, ("largest_batch_slots",), "upper bound: the token budget")
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
