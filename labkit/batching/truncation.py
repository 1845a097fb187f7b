"""Truncation: the most recent events are kept, and what is lost is counted, users and events together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from labkit.batching.fields import whole_number
from labkit.lengths.histogram import LengthHistogram

_History = TypeVar("_History", bound=Sequence)  # type: ignore[type-arg]  # anything with len and slices: arrays, tensors, lists


def recent(history: _History, n: int) -> _History:
    """The ``n`` most recent events of a history, oldest first.

        recent([1, 2, 3], 2) -> [2, 3]    recent([1, 2, 3], 0) -> []    recent([1, 2, 3], 5) -> [1, 2, 3]

    Args:
        history: (T,) or (T, D), oldest first: a list, an array, a tensor.
        n: events to keep, >= 0.

    Returns:
        A slice (a view for arrays and tensors).

    Raises:
        PolicyError: n below 0 or not whole.
    """
    n = whole_number("n", n, least=0)
    # not history[-n:], which keeps everything for n = 0
    return history[len(history) - min(n, len(history)) :]  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class CapLoss:
    """What a cap costs: always both sides.

    Attributes:
        kept_events: events that stay.
        events_lost: events cut.
        sequences_truncated: sequences that lose a part.
        truncated_share: sequences_truncated / sequences.
        lost_share: events_lost / events, 0 without events.
    """

    kept_events: int
    events_lost: int
    sequences_truncated: int
    truncated_share: float
    lost_share: float


def cap_loss(histogram: LengthHistogram, max_length: int | None) -> CapLoss:
    """What capping every sequence at ``max_length`` costs; None is no cap. Cost: O(log m)."""
    if max_length is None or max_length >= histogram.max:
        return CapLoss(histogram.events, 0, 0, 0.0, 0.0)
    cut = int(np.searchsorted(histogram.values, max_length, side="right"))
    truncated = histogram.sequences - int(histogram.count_sums[cut])
    kept = int(histogram.event_sums[cut]) + truncated * max_length
    lost = histogram.events - kept
    return CapLoss(kept, lost, truncated, truncated / histogram.sequences, lost / histogram.events)


def lowest_cap(histogram: LengthHistogram, max_events_lost: float) -> int | None:
    """The lowest cap that loses at most a share of the events; None where no cap is needed for that.

    Args:
        histogram: of lengths.
        max_events_lost: largest share of events that may be lost, 0 .. 1.

    Returns:
        The smallest ``max_length`` >= 1 within the share; None at share 0 (nothing may be cut).

    Cost: O(log max) bisection.
    """
    if max_events_lost <= 0 or histogram.max <= 1:
        return None
    low, high = 1, histogram.max
    while low < high:
        middle = (low + high) // 2
        if cap_loss(histogram, middle).lost_share <= max_events_lost:
            high = middle
        else:
            low = middle + 1
    return low if low < histogram.max else None
