"""Best-fit decreasing on counts: exact scenarios, and the same packs as sequence by sequence."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.even_deal import even_deal
from labkit.batching.pack_bound import fewest_packs
from labkit.batching.packing import Packing, pack

MANY = settings(max_examples=300)
LENGTHS = st.lists(st.integers(1, 12) | st.sampled_from([3, 4, 5, 6]), min_size=1, max_size=50)
WITH_EMPTY = st.lists(st.integers(0, 9), min_size=1, max_size=50)


def counted(lengths: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(np.array(lengths, dtype=np.int64), return_counts=True)


def one_by_one(lengths: list[int], capacity: int) -> int:
    """Best-fit decreasing of single sequences, as an obvious loop: packs."""
    rooms: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [room for room in rooms if room >= length]
        room = min(fitting, default=capacity)
        if fitting:
            rooms.remove(room)
        rooms.append(room - length)
    return len(rooms)


def fewest(lengths: list[int], capacity: int) -> int:
    """The optimum by trying everything: only for a handful of sequences."""
    todo = sorted(lengths, reverse=True)

    def place(i: int, rooms: tuple[int, ...]) -> int:
        if i == len(todo):
            return len(rooms)
        options = {tuple(sorted([*rooms, capacity - todo[i]]))}
        for j, room in enumerate(rooms):
            if room >= todo[i]:
                options.add(tuple(sorted([*rooms[:j], *rooms[j + 1 :], room - todo[i]])))
        return min(place(i + 1, option) for option in options)

    return place(0, ())


def assert_sound(packing: Packing, lengths: list[int], most: int | None) -> None:
    """Every sequence in exactly one pack, no pack over its capacity or its number of sequences."""
    seen: Counter[int] = Counter()
    for packs, pattern in packing:
        assert packs > 0
        assert [length for length, _ in pattern] == sorted({length for length, _ in pattern}, reverse=True)
        assert sum(length * copies for length, copies in pattern) <= packing.capacity
        assert 0 < sum(copies for _, copies in pattern) <= (most or len(lengths))
        for length, copies in pattern:
            assert copies > 0
            seen[length] += packs * copies
    assert seen == Counter(lengths)


@pytest.mark.parametrize(
    ("lengths", "most", "wanted"),
    [
        # 4 | 3 + 1 | 2: the 1 goes where it leaves the least room
        ([4, 2, 3, 1], None, [(1, [(4, 1)]), (1, [(3, 1), (1, 1)]), (1, [(2, 1)])]),
        # seven 1: four fill a pack, three make another
        ([1] * 7, None, [(1, [(1, 4)]), (1, [(1, 3)])]),
        ([1] * 7, 2, [(3, [(1, 2)]), (1, [(1, 1)])]),
        # the 0 takes no room but a place: 4 is alone in its pack with most=1
        ([4, 0], 1, [(1, [(4, 1)]), (1, [(0, 1)])]),
        ([4, 0], 2, [(1, [(4, 1), (0, 1)])]),
        ([0, 0, 0], None, [(1, [(0, 3)])]),
        ([0, 0, 0], 2, [(1, [(0, 2)]), (1, [(0, 1)])]),
        # five 0 to three packs: 2, 2 and 1
        ([4, 4, 3, 0, 0, 0, 0, 0], None, [(2, [(4, 1), (0, 2)]), (1, [(3, 1), (0, 1)])]),
    ],
    ids=["best-fit", "rest", "most", "empty-alone", "empty-beside", "all-empty", "all-empty-most", "empty-evenly"],
)
def test_small_packings(lengths: list[int], most: int | None, wanted: list[object]) -> None:
    packing = pack(*counted(lengths), 4, most)
    assert list(packing) == wanted
    assert_sound(packing, lengths, most)


@MANY
@given(LENGTHS, st.integers(12, 40))
def test_as_many_packs_as_sequence_by_sequence(lengths: list[int], capacity: int) -> None:
    assert pack(*counted(lengths), capacity).packs == one_by_one(lengths, capacity)


@MANY
@given(WITH_EMPTY, st.integers(9, 30), st.none() | st.integers(1, 6))
def test_every_sequence_is_in_one_pack_within_the_limits(lengths: list[int], capacity: int, most: int | None) -> None:
    packing = pack(*counted(lengths), capacity, most)
    assert_sound(packing, lengths, most)
    assert packing.packs >= fewest_packs(*counted(lengths), capacity, most)
    longest = [max(length for length, _ in pattern) for _, pattern in packing]
    assert packing.longest().tolist() == longest
    assert packing.along(packing.length * packing.copies).tolist() == [sum(n * c for n, c in p) for _, p in packing]


@MANY
@given(st.lists(st.integers(1, 10), min_size=1, max_size=8), st.integers(10, 14))
def test_the_bound_is_below_the_optimum(lengths: list[int], capacity: int) -> None:
    best = fewest(lengths, capacity)
    assert -(-sum(lengths) // capacity) <= fewest_packs(*counted(lengths), capacity) <= best
    assert best <= pack(*counted(lengths), capacity).packs


def test_the_bound_knows_what_cannot_stand_together() -> None:
    # sum 27 of 10: 3 by volume; no 5 fits beside a 6, and two 5 fill a pack: 2 + 2
    assert fewest_packs(*counted([6, 6, 5, 5, 5]), 10) == 4
    # 7 and 8 leave room 3 and 2: of the 3 + 3 that come next, one fits beside the 7 by volume, 1 event is beyond
    assert fewest_packs(*counted([7, 8, 3, 3]), 10) == 3
    assert fewest_packs(*counted([0, 0]), 10) == 1
    assert fewest_packs(*counted([1] * 9), 10, most=2) == 5


def test_equal_lengths_are_never_looked_at_one_by_one() -> None:
    # 2**40 sequences: 3 of 3 fit 10, and a 1 beside them
    packing = pack(np.array([1, 3]), np.array([2**40, 3 * 2**40]), 10)
    assert list(packing) == [(2**40, [(3, 3), (1, 1)])]


@MANY
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), max_size=8),
    st.integers(0, 60),
)
def test_even_deal_fills_the_emptiest_first(groups: list[tuple[int, int]], things: int) -> None:
    count, places = (np.array([g[i] for g in groups], dtype=np.int64) for i in (0, 1))
    of, share, packs = even_deal(count, places, things)
    dealt = int((share * packs).sum())
    assert dealt == min(things, int((count * places).sum()))
    assert np.bincount(of, weights=packs, minlength=len(groups)).tolist() == count.tolist()
    assert (share <= places[of]).all()
    open_ = share < places[of]
    for i, j in product(range(of.size), repeat=2):
        if open_[i] and packs[i] and packs[j]:
            assert share[j] <= share[i] + 1  # one with a place left is at most one behind
