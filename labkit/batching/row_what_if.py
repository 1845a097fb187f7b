"""The what-if of fixed rows without padding (``rnn_packed``): the events of its rows are all that a batch holds."""

from __future__ import annotations

import numpy as np

from labkit.batching.figures import FIGURES, WhatIf, mark
from labkit.batching.policy import BatchPolicy
from labkit.batching.truncation import cap_loss
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin

_DROPPED = "expectation over shuffles: drop_last leaves out whichever rows come last"


def row_what_if(histogram: LengthHistogram, policy: BatchPolicy) -> WhatIf:
    """Score a policy of fixed rows without padding. Cost: O(m)."""
    loss, capped = cap_loss(histogram, policy.max_length), histogram.capped(policy.max_length)
    full, rest = divmod(histogram.sequences, policy.rows)
    left_out = rest if policy.drop_last else 0
    share = (histogram.sequences - left_out) / histogram.sequences
    kept: int | float = loss.kept_events * share if left_out else loss.kept_events
    provenance = dict.fromkeys(FIGURES, Origin.EXACT)
    reason: dict[str, str] = {}
    batches = full + (rest > 0 and not left_out)
    shapes = batches
    if capped.distinct == 1:
        shapes = min(full, 1) + (rest > 0 and not left_out)
    elif batches > 1:
        mark(provenance, reason, ("shapes",), "upper bound: every batch has its own number of events")
    if capped.distinct > 1 and (batches > 1 or (batches and left_out)):
        mark(provenance, reason, ("largest_batch_slots",), "upper bound: the longest rows of all in one batch")
    if left_out:
        names = ("slots", "kept_events", "events_lost", "sequences_truncated")
        mark(provenance, reason, names, _DROPPED)
    return WhatIf(
        policy=policy,
        sequences=histogram.sequences,
        events=histogram.events,
        padding_ratio=0.0,
        slots=kept,
        kept_events=kept,
        events_lost=histogram.events - kept,
        sequences_truncated=loss.sequences_truncated * share if left_out else loss.sequences_truncated,
        sequences_dropped=left_out,
        batches=batches,
        shapes=shapes,
        ghost_rows=0,
        largest_batch_slots=_events_of_longest(capped, policy.rows) if batches else 0,
        batches_over_budget=0,
        provenance=provenance,
        reason=reason,
    )


def _events_of_longest(histogram: LengthHistogram, rows: int) -> int:
    """Events of that many sequences, the longest of all."""
    rows = min(rows, histogram.sequences)
    shorter = int(np.searchsorted(histogram.count_sums, histogram.sequences - rows, side="right"))
    longer = histogram.sequences - int(histogram.count_sums[shorter])
    return histogram.events - int(histogram.event_sums[shorter]) + (rows - longer) * int(histogram.values[shorter - 1])
