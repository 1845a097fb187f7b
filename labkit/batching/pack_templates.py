"""The patterns of a packing, written out: which lengths a pack of each pattern holds, long to short."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.batching.packing import Packing


class Templates(NamedTuple):
    """Every pattern once, one after another.

    Attributes:
        ids: (t,) positions in the lengths of pieces, in the smallest unsigned type.
        offsets: (G + 1,) int64, pattern g is ``ids[offsets[g]:offsets[g + 1]]``.
    """

    ids: NDArray[np.integer]
    offsets: NDArray[np.int64]


def templates_of(packing: Packing, values: NDArray[np.int64]) -> Templates:
    """Write out the patterns of a packing of pieces with these (m,) lengths.

    Cost: O(pieces in one pack of each pattern), at most one a piece of the data set.
    """
    pattern, entry = _entries(packing)
    place = np.searchsorted(values, packing.length).astype(id_type(values.size))
    copies = packing.copies[entry]
    ids = place[entry]
    with_empty = np.flatnonzero(packing.empty)
    pattern = np.append(pattern, with_empty)
    ids = np.append(ids, np.zeros(with_empty.size, dtype=ids.dtype))  # 0 is the shortest length
    copies = np.append(copies, packing.empty[with_empty])
    order = np.argsort(pattern, kind="stable")
    sizes = np.zeros(packing.count.size, dtype=np.int64)
    np.add.at(sizes, pattern, copies)
    return Templates(np.repeat(ids[order], copies[order]), np.concatenate(([0], np.cumsum(sizes))))


def id_type(many: int) -> type[np.unsignedinteger]:
    """The smallest type for ``many`` lengths and one number more; one of 16 bits or less sorts fastest."""
    return np.uint8 if many < 2**8 else np.uint16 if many < 2**16 else np.uint32


def _entries(packing: Packing) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(pattern, entry) of all patterns, the entries of each from long to short."""
    pattern = np.flatnonzero(packing.head >= 0)
    entry = packing.head[pattern]
    rounds = []
    while entry.size:
        rounds.append((pattern, entry))
        entry = packing.parent[entry]
        deeper = entry >= 0
        pattern, entry = pattern[deeper], entry[deeper]
    rounds.reverse()  # they were walked from short to long
    both = np.concatenate([np.array(pair) for pair in rounds], axis=1) if rounds else np.zeros((2, 0), np.int64)
    return both[0], both[1]
