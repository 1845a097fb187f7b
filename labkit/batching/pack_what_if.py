"""The what-if of packs: exact, but for what ``drop_last`` leaves to chance."""

from __future__ import annotations

from math import exp, lgamma

import numpy as np

from labkit.batching.figures import FIGURES, WhatIf, mark
from labkit.batching.pack_figures import packed
from labkit.batching.pack_pieces import Pieces, width_of
from labkit.batching.policy import BatchPolicy, Overflow
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin

_DROPPED = "expectation over shuffles: drop_last leaves out whichever packs come last"


def packed_what_if(histogram: LengthHistogram, policy: BatchPolicy) -> WhatIf:
    """Score a packed policy; see ``what_if``.

    With ``drop_last`` the last, partial batch of packs is left out. A sequence of which no piece is left is dropped;
    one that loses some of its pieces is truncated. Which ones depends on the shuffle.

    Raises:
        PolicyError: a length above the capacity with ``overflow='error'``.

    Cost: that of ``packed``.
    """
    found, width, rows = packed(histogram, policy), width_of(policy, histogram), policy.rows
    pieces, all_packs = found.pieces, found.packing.packs
    full, rest = divmod(all_packs, rows)
    left_out = rest if policy.drop_last else 0
    packs = all_packs - left_out
    kept: int | float = pieces.events
    truncated, dropped = float(pieces.sequences_truncated), float(pieces.sequences_dropped)
    provenance = {**dict.fromkeys(FIGURES, Origin.EXACT), "packs": Origin.EXACT}
    reason: dict[str, str] = {}
    if left_out:
        kept *= packs / all_packs
        truncated, dropped = _expected_cut(histogram, policy, pieces, (all_packs, left_out))
        names = ("padding_ratio", "kept_events", "events_lost", "sequences_truncated", "sequences_dropped")
        mark(provenance, reason, names, _DROPPED)
    sizes = {min(rows, packs)} | ({rest} if rest and not left_out else set()) if packs else set()
    return WhatIf(
        policy=policy,
        sequences=histogram.sequences,
        events=histogram.events,
        padding_ratio=1 - kept / (packs * width) if packs else 0.0,
        slots=packs * width,
        kept_events=kept,
        events_lost=histogram.events - kept,
        sequences_truncated=truncated if left_out else pieces.sequences_truncated,
        sequences_dropped=dropped if left_out else pieces.sequences_dropped,
        batches=full + (rest > 0 and not left_out),
        shapes=len(sizes),
        ghost_rows=0,
        largest_batch_slots=min(rows, packs) * width,
        batches_over_budget=0,
        provenance=provenance,
        reason=reason,
        packs=packs,
        packing=found.figures,
    )


def _expected_cut(
    histogram: LengthHistogram, policy: BatchPolicy, pieces: Pieces, packs: tuple[int, int]
) -> tuple[float, float]:
    """Expected sequences truncated and dropped where a number of all packs, drawn at random, is left out.

    The pieces of one sequence lie in different packs: all but one of them fill a pack each.
    """
    values, counts = histogram.values, histogram.counts
    cap = histogram.max if policy.max_length is None else policy.max_length
    capped = np.minimum(values, cap)
    parts = np.maximum(1, -(-capped // pieces.capacity)) if policy.overflow is Overflow.SPLIT else np.ones_like(values)
    out = capped > pieces.capacity if policy.overflow is Overflow.DROP else np.zeros(values.size, dtype=bool)
    cut = values > (min(cap, pieces.capacity) if policy.overflow is Overflow.TRUNCATE else cap)
    different, place = np.unique(parts, return_inverse=True)
    chances = [(_all_among(n, *packs), _all_among(n, packs[0], packs[0] - packs[1])) for n in different.tolist()]
    lost, whole = np.array(chances)[place].T
    dropped = np.where(out, 1.0, lost)
    truncated = np.where(out, 0.0, 1.0 - lost - np.where(cut, 0.0, whole))
    return float(truncated @ counts), float(dropped @ counts)


def _all_among(parts: int, packs: int, drawn: int) -> float:
    """Probability that given ``parts`` of all packs are all among the ``drawn`` ones."""
    if parts > drawn:
        return 0.0
    if parts == 1:
        return drawn / packs
    return exp(lgamma(drawn + 1) - lgamma(drawn - parts + 1) + lgamma(packs - parts + 1) - lgamma(packs + 1))
