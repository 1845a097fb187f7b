"""Which share of the sequences and of the events each regime of the segmented kernels takes: exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labkit.gpu.regimes import Regime
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class RegimeShare:
    """What one regime takes.

    Attributes:
        regime: who works on such a row.
        above: events; its rows are longer than this (-1: from empty rows on).
        most: events; its rows are at most so long; None: no limit.
        sequences: its rows.
        events: in them.
        sequence_share: of all sequences.
        event_share: of all events; None where there are none.
    """

    regime: Regime
    above: int
    most: int | None
    sequences: int
    events: int
    sequence_share: float
    event_share: float | None


def regime_shares(histogram: LengthHistogram, thresholds: Sequence[int]) -> tuple[RegimeShare, ...]:
    """All four regimes, also those without rows. ``thresholds``: the short, medium and long maximum."""
    ends = np.searchsorted(histogram.values, np.asarray(thresholds), side="right")
    cuts = [0, *ends.tolist(), len(histogram.values)]
    above, most = (-1, *thresholds), (*thresholds, None)
    shares = []
    for place, regime in enumerate(Regime):
        low, high = cuts[place], max(cuts[place], cuts[place + 1])
        sequences = int(histogram.count_sums[high] - histogram.count_sums[low])
        events = int(histogram.event_sums[high] - histogram.event_sums[low])
        shares.append(
            RegimeShare(
                regime,
                above[place],
                most[place],
                sequences,
                events,
                sequences / histogram.sequences,
                events / histogram.events if histogram.events else None,
            )
        )
    return tuple(shares)
