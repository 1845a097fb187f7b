"""Dealing things that take no room to places, as evenly as they allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def even_deal(
    count: NDArray[np.int64], places: NDArray[np.int64], things: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Deal ``things`` to groups of equal packs: no pack gets two more than another that still has a place.

        2 packs of 1 place, 3 of 9, 7 things -> 2 packs get 1, 2 packs get 2, 1 pack gets 1

    Args:
        count: (G,) int64, packs of each group, >= 1.
        places: (G,) int64, places of each of its packs, >= 0.
        things: how many, >= 0; those for which there is no place are left over.

    Returns:
        group, share and count, (G',) int64 each: ``count`` packs of a group get ``share`` things; at most one group
        comes in two parts.

    Cost: O(G log G).
    """
    level, left = _level(count, places, things)
    group, share = np.arange(count.size), np.minimum(places, level)
    open_ = np.flatnonzero(places > level)
    before = np.cumsum(count[open_]) - count[open_]
    more = np.clip(left - before, 0, count[open_])  # packs of a group that get one on top
    whole = open_[more == count[open_]]
    share[whole] += 1
    partly = (more > 0) & (more < count[open_])
    split = open_[partly]
    count = count.copy()
    count[split] -= more[partly]
    return np.append(group, split), np.append(share, share[split] + 1), np.append(count, more[partly])


def _level(count: NDArray[np.int64], places: NDArray[np.int64], things: int) -> tuple[int, int]:
    """How many things every pack gets that has the places, and what is left for some of them to get one more."""
    order = np.argsort(places, kind="stable")
    rest = int(count.sum())  # packs that are not full yet
    level = 0
    for most, packs in zip(places[order].tolist(), count[order].tolist(), strict=True):
        if things < (most - level) * rest:
            return level + things // rest, things % rest
        things -= (most - level) * rest
        level, rest = most, rest - packs
    return level, 0
