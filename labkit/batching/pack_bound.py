"""The fewest packs that there can be: a lower bound on bin packing, from the distinct lengths alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fewest_packs(values: NDArray[np.int64], counts: NDArray[np.int64], capacity: int, most: int | None = None) -> int:
    """No packing has fewer packs than this.

    For a threshold t, sequences longer than ``capacity - t`` share their pack with none of t or more. Those between
    half a capacity and that take a pack each, and what the sequences of t .. capacity / 2 need beyond the room that is
    left there takes packs more. The bound is the largest over all t, and the sequences over ``most``.

        capacity 10, lengths 6 6 5 5 5 -> 4 packs, though their sum is 27: two 5 fit one pack, no 5 fits beside a 6

    Args:
        values: (m,) int64, strictly increasing lengths, 0 .. capacity.
        counts: (m,) int64, sequences of each.
        capacity: most events of a pack.
        most: most sequences of a pack; None: no limit.

    Cost: O(m log m), vectorized.
    Source: S. Martello, P. Toth, Lower Bounds and Reduction Procedures for the Bin Packing Problem, 1990: L2.
    """
    numbers = np.concatenate(([0], np.cumsum(counts)))
    events = np.concatenate(([0], np.cumsum(values * counts)))
    half = int(np.searchsorted(values, capacity // 2, side="right"))
    thresholds = np.append(0, values[:half])
    low = np.searchsorted(values, thresholds, side="left")
    high = np.searchsorted(values, capacity - thresholds, side="right")  # from here on they are alone
    alone = numbers[-1] - numbers[high]
    beside = numbers[high] - numbers[half]
    room = beside * capacity - (events[high] - events[half])
    beyond = np.maximum(0, events[half] - events[low] - room)
    found = int((alone + beside - (-beyond // capacity)).max())
    return max(found, min(1, values.size), 0 if most is None else -(-int(numbers[-1]) // most))
