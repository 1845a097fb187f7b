"""What a cap costs on either side: which events are never seen, and whether the latest one is among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from labkit.batching.fields import whole_number
from labkit.batching.truncation import cap_loss
from labkit.lengths.histogram import LengthHistogram


class Side(StrEnum):
    """Which events of a history that is too long are kept."""

    RECENT = "recent"  # the last ones: what every strategy of labkit does
    OLDEST = "oldest"  # the first ones
    STOCHASTIC = "stochastic"  # a window at random, drawn anew every epoch


@dataclass(frozen=True, slots=True)
class CapPoint:
    """One cap.

    Attributes:
        max_length: the cap.
        truncated_share: users cut / users; the same on every side.
        lost_share: events lost in one epoch / events; the same on every side.
        unseen_share: by side, events that no epoch shows / events, expected.
        latest_share: by side, users whose latest event is seen in one epoch / users, expected.
    """

    max_length: int
    truncated_share: float
    lost_share: float
    unseen_share: dict[Side, float]
    latest_share: dict[Side, float]


def default_caps(histogram: LengthHistogram, points: int = 16) -> tuple[int, ...]:
    """Caps from short to the longest length, about evenly spaced on a logarithmic axis."""
    grid = np.geomspace(min(4, histogram.max), histogram.max, max(2, points))
    return tuple(sorted(set(np.rint(grid).astype(np.int64).tolist())))


def cap_curve(histogram: LengthHistogram, caps: Sequence[int], epochs: int = 10) -> tuple[CapPoint, ...]:
    """What each cap costs, exactly; for the random window, in expectation.

    A window of c events in a history of L starts at each of its L - c + 1 places with the same probability, so that the
    event at place p is seen with probability min(p + 1, L - p, c, L - c + 1) / (L - c + 1), and in none of E epochs
    with (1 - that) to the power of E.

    Args:
        histogram: of lengths.
        caps: each 1 or more.
        epochs: E, over which the random window is looked at.

    Cost: O(sum of the distinct lengths above the cap) a cap.
    """
    epochs = whole_number("epochs", epochs)
    return tuple(_point(histogram, whole_number("max_length", cap), epochs) for cap in caps)


def _point(histogram: LengthHistogram, cap: int, epochs: int) -> CapPoint:
    loss = cap_loss(histogram, cap)
    cut = int(np.searchsorted(histogram.values, cap, side="right"))
    lengths, counts = histogram.values[cut:], histogram.counts[cut:]
    unseen = sum(c * _unseen_events(n, cap, epochs) for n, c in zip(lengths.tolist(), counts.tolist(), strict=True))
    users_with_events = histogram.sequences - (int(histogram.counts[0]) if histogram.values[0] == 0 else 0)
    whole = users_with_events - loss.sequences_truncated
    by_window = float((counts / (lengths - cap + 1)).sum())
    return CapPoint(
        max_length=cap,
        truncated_share=loss.truncated_share,
        lost_share=loss.lost_share,
        unseen_share={
            Side.RECENT: loss.lost_share,
            Side.OLDEST: loss.lost_share,
            Side.STOCHASTIC: unseen / histogram.events if histogram.events else 0.0,
        },
        latest_share={
            Side.RECENT: users_with_events / histogram.sequences,
            Side.OLDEST: whole / histogram.sequences,
            Side.STOCHASTIC: (whole + by_window) / histogram.sequences,
        },
    )


def _unseen_events(length: int, cap: int, epochs: int) -> float:
    """Expected events of one history that no window of the epochs covers."""
    places = np.arange(length)
    starts = length - cap + 1
    covering = np.minimum(np.minimum(places + 1, length - places), min(cap, starts))
    return float(((1 - covering / starts) ** epochs).sum())
