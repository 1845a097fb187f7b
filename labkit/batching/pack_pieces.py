"""What a packed policy makes of given lengths: the capacity, and the pieces that are to be packed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.groups import round_up
from labkit.batching.policy import BatchPolicy, Overflow
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, eq=False, slots=True)
class Pieces:
    """The pieces of a data set: a sequence is one of them, or several where it is split.

        capacity 4, max_length 9, lengths 3 4 11:   truncate 3 4 4   split 3 4 1 4 4   drop 3 4

    Attributes:
        capacity: most events of a pack.
        values: (m,) int64, strictly increasing lengths of pieces.
        counts: (m,) int64, pieces of each length.
        sequences_truncated: sequences that lose a part.
        sequences_dropped: sequences left out whole.
    """

    capacity: int
    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    sequences_truncated: int
    sequences_dropped: int

    @property
    def events(self) -> int:
        """Events of all pieces."""
        return int((self.values * self.counts).sum())


def capacity_of(policy: BatchPolicy, histogram: LengthHistogram | None) -> int:
    """The capacity of a packed policy with its default resolved: the longest length after the cap, at least 1.

    Raises:
        PolicyError: neither a capacity nor lengths to find it in.
    """
    if policy.capacity is not None:
        return policy.capacity
    if histogram is None:
        raise PolicyError(
            "packed without capacity packs to the longest length of the data set, which no policy holds: "
            "set capacity, or pass histogram=."
        )
    longest = histogram.max if policy.max_length is None else min(policy.max_length, histogram.max)
    return max(1, longest)


def width_of(policy: BatchPolicy, histogram: LengthHistogram | None) -> int:
    """Slots of a pack: the capacity rounded up. The room that rounding adds stays empty."""
    return int(round_up(np.array(capacity_of(policy, histogram)), policy.length_multiple))


def pieces_of(policy: BatchPolicy, histogram: LengthHistogram, lengths: NDArray[np.integer] | None = None) -> Pieces:
    """Cap the lengths, then apply ``overflow`` to those above the capacity.

    Args:
        policy: a packed policy.
        histogram: of the lengths.
        lengths: the (N,) lengths themselves where they are at hand, so that an error can name an index.

    Raises:
        PolicyError: a length above the capacity with ``overflow='error'``.

    Cost: O(m log m).
    """
    capacity, capped = capacity_of(policy, histogram), histogram.capped(policy.max_length)
    cut_by_cap = _above(histogram, policy.max_length)
    above = _above(capped, capacity)
    if not above:
        return Pieces(capacity, capped.values, capped.counts, cut_by_cap, 0)
    fitting = int(np.searchsorted(capped.values, capacity, side="right"))
    values, counts = capped.values[:fitting], capped.counts[:fitting]
    match policy.overflow:
        case Overflow.ERROR:
            raise PolicyError(_too_long(capacity, capped.max, above, histogram.sequences, lengths))
        case Overflow.TRUNCATE:
            cut = capped.capped(capacity)
            return Pieces(capacity, cut.values, cut.counts, above, 0)
        case Overflow.DROP:  # what the cap cuts is above the capacity too
            return Pieces(capacity, values, counts, 0, above)
        case Overflow.SPLIT:
            longer, many = capped.values[fitting:], capped.counts[fitting:]
            full = int((longer // capacity * many).sum())
            values, counts = _merged(
                np.concatenate((values, longer % capacity, [capacity])),
                # a rest of 0 is no piece
                np.concatenate((counts, np.where(longer % capacity, many, 0), [full])),
            )
            return Pieces(capacity, values, counts, cut_by_cap, 0)


def _merged(values: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each value once, ascending, with the sum of its counts; without those of none."""
    distinct, place = np.unique(values, return_inverse=True)
    sums = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(sums, place, counts)
    return distinct[sums > 0], sums[sums > 0]


def _above(histogram: LengthHistogram, limit: int | None) -> int:
    if limit is None or limit >= histogram.max:
        return 0
    return histogram.sequences - int(histogram.count_sums[np.searchsorted(histogram.values, limit, side="right")])


def _too_long(capacity: int, longest: int, above: int, sequences: int, lengths: NDArray[np.integer] | None) -> str:
    where = "" if lengths is None else f", the first at index {int(np.argmax(lengths > capacity))}"
    return (
        f"longest length {longest} > capacity {capacity} ({above} of {sequences} sequences above it{where}): "
        f"raise capacity to {longest} or more, set max_length, or choose overflow 'truncate', 'split' or 'drop'."
    )
