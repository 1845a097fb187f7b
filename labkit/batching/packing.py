"""Best-fit decreasing on (length, count) pairs: the packs of a data set at the cost of its distinct lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from labkit.batching.even_deal import even_deal

_N = TypeVar("_N", np.int64, np.float64)

#: The parent of the first entry of a pattern.
_ROOT = -1


@dataclass(frozen=True, eq=False, slots=True)
class Packing:
    """Packs as patterns with a multiplicity.

        capacity 4, lengths 4 3 2 1 -> 1 x [4], 1 x [3, 1], 1 x [2]

    A pattern is a linked list of entries ``copies`` x ``length``, from the shortest to the longest: patterns share
    their beginnings, so that all of them together take O(distinct lengths) memory.

    Attributes:
        capacity: most events of a pack.
        count: (G,) int64, packs of each pattern.
        head: (G,) int64, the last entry of each pattern, -1 for packs of empty sequences alone.
        empty: (G,) int64, sequences of length 0 in each pack of the pattern.
        length: (E,) int64, length of the sequences of an entry, >= 1.
        copies: (E,) int64, how many of them a pack holds.
        parent: (E,) int64, the entry before, of a longer length; -1 where there is none.
    """

    capacity: int
    count: NDArray[np.int64]
    head: NDArray[np.int64]
    empty: NDArray[np.int64]
    length: NDArray[np.int64]
    copies: NDArray[np.int64]
    parent: NDArray[np.int64]

    @property
    def packs(self) -> int:
        """Number of packs."""
        return int(self.count.sum())

    def pattern(self, i: int) -> list[tuple[int, int]]:
        """(length, copies) of pattern i from long to short; empty sequences come last, as length 0."""
        found, entry = [], int(self.head[i])
        while entry != _ROOT:
            found.append((int(self.length[entry]), int(self.copies[entry])))
            entry = int(self.parent[entry])
        found.reverse()
        return found + ([(0, int(self.empty[i]))] if self.empty[i] else [])

    def __iter__(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Packs of a pattern and its (length, copies), pattern after pattern."""
        return ((int(n), self.pattern(i)) for i, n in enumerate(self.count))

    def along(self, of_entry: NDArray[_N]) -> NDArray[_N]:
        """(G,) sum over the entries of each pattern of one (E,) number an entry. Cost: O(G) a step of depth."""
        sums = np.zeros(self.head.size, dtype=of_entry.dtype)
        where = np.flatnonzero(self.head != _ROOT)
        at = self.head[where]
        while where.size:
            sums[where] += of_entry[at]
            at = self.parent[at]
            deeper = at != _ROOT
            at, where = at[deeper], where[deeper]
        return sums

    def longest(self) -> NDArray[np.int64]:
        """(G,) length of the longest sequence of each pattern, 0 where all are empty."""
        first = self.parent == _ROOT
        return self.along(np.where(first, self.length, 0))


def pack(values: NDArray[np.int64], counts: NDArray[np.int64], capacity: int, most: int | None = None) -> Packing:
    """Pack sequences into as few packs as best-fit decreasing finds.

    Long to short, each sequence goes to the pack with the least room that holds it, or opens a new one. Equal sequences
    that come after one another fill one pack until the next does not fit: what stays is less than before and still
    enough, so the same pack is the best fit again. Equal packs are therefore treated as one, whole groups at a time.

    Sequences of length 0 take no room: they are dealt to all packs as evenly as ``most`` allows, each to one of them.

    Args:
        values: (m,) int64, strictly increasing lengths, 0 .. capacity.
        counts: (m,) int64, sequences of each, >= 1.
        capacity: most events of a pack, >= 1.
        most: most sequences of a pack, >= 1; among packs of equal room the one that may take fewer more is filled
            first. None: no limit.

    Returns:
        The patterns; as many packs as any best-fit decreasing of the single sequences makes.

    Cost: O(m log m log capacity) however many the sequences: a group that is touched again has at most half its room.
        4096 distinct lengths in some ten milliseconds.
    Source: D. S. Johnson, Near-Optimal Bin Packing Algorithms, 1973: at most 11/9 of the optimum and 4 packs.
    """
    fill = _Fill(capacity, most)
    is_empty = bool(values.size and values[0] == 0)
    for length, count in zip(values[is_empty:][::-1].tolist(), counts[is_empty:][::-1].tolist(), strict=True):
        fill.add(length, count)
    return fill.packing(int(counts[0]) if is_empty else 0)


class _Fill:
    """Packs being filled: groups of equal ones, those with room for the current length apart from those without."""

    def __init__(self, capacity: int, most: int | None) -> None:
        self.capacity = capacity
        self.most = most
        self.places = capacity if most is None else most  # lengths are 1 or more: capacity of them is no limit
        # entries of patterns
        self.length: list[int] = []
        self.copies: list[int] = []
        self.parent: list[int] = []
        # groups; one that fell apart stays behind with 0 packs
        self.count: list[int] = []
        self.head: list[int] = []
        # heaps of open groups
        self.fits: list[tuple[int, int, int]] = []  # (room, places, group), least room first
        self.tight: list[tuple[int, int, int]] = []  # (-room, places, group), most room first

    def add(self, length: int, count: int) -> None:
        """Place ``count`` sequences of one length, shorter than all before."""
        fits, tight = self.fits, self.tight
        while tight and -tight[0][0] >= length:
            room, places, group = heappop(tight)
            heappush(fits, (-room, places, group))
        while count and fits:
            room, places, group = heappop(fits)
            each = min(room // length, places)
            packs = self.count[group]
            if packs * each > count:
                left = packs - self._place(length, count, each, (room, places, self.head[group]))
                self.count[group] = left
                if left:
                    heappush(fits, (room, places, group))
                return
            count -= packs * each
            self.head[group] = self._entry(length, each, self.head[group])
            self._file(room - each * length, places - each, group, length)
        if count:
            each = min(self.capacity // length, self.places)
            self._place(length, count, each, (self.capacity, self.places, _ROOT))

    def _place(self, length: int, count: int, each: int, of: tuple[int, int, int]) -> int:
        """Put ``count`` sequences into packs of one kind, ``each`` in one and the rest in one more; the packs used."""
        room, places, head = of
        full, rest = divmod(count, each)
        for packs, copies in ((full, each), (1, rest)):
            if packs and copies:
                self.count.append(packs)
                self.head.append(self._entry(length, copies, head))
                self._file(room - copies * length, places - copies, len(self.count) - 1, length)
        return full + (rest > 0)

    def _entry(self, length: int, copies: int, parent: int) -> int:
        self.length.append(length)
        self.copies.append(copies)
        self.parent.append(parent)
        return len(self.length) - 1

    def _file(self, room: int, places: int, group: int, length: int) -> None:
        """Keep a group that is still open where it is found again."""
        if room and places:
            tight = room < length
            heappush(self.tight if tight else self.fits, (-room if tight else room, places, group))

    def packing(self, empty: int) -> Packing:
        """The result, once ``empty`` sequences of length 0 are dealt to the packs."""
        count, head = np.array(self.count, np.int64), np.array(self.head, np.int64)
        used = count > 0
        names = ("length", "copies", "parent")
        found = Packing(
            self.capacity, count[used], head[used], np.zeros(int(used.sum()), np.int64),
            *(np.array(getattr(self, name), np.int64) for name in names),
        )  # fmt: skip
        return found if not empty else _with_empty(found, empty, self.most)


def _with_empty(packing: Packing, empty: int, most: int | None) -> Packing:
    """Deal sequences of length 0 to the packs, as evenly as the places that are left allow; new packs for the rest."""
    held = packing.along(packing.copies)
    if most is None and not held.size:  # no pack yet: one takes all
        most = empty
    places = np.full(held.size, empty, np.int64) if most is None else most - held
    own, share, count = even_deal(packing.count, places, empty)
    head, rest = packing.head[own], empty - int((count * share).sum())
    for packs, each in () if most is None else ((rest // most, most), (1, rest % most)):
        if packs and each:
            head, share, count = np.append(head, _ROOT), np.append(share, each), np.append(count, packs)
    return replace(packing, count=count, head=head, empty=share)
