"""Pieces of a data set by length, shuffled, and dealt to packs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.batching.pack_pieces import Pieces
from labkit.batching.pack_templates import Templates, id_type
from labkit.batching.policy import BatchPolicy, Overflow
from labkit.batching.random_order import random_order
from labkit.lengths.validate import CHUNK, MAX_LENGTH


class Dealt(NamedTuple):
    """Pieces in the order of their packs: (n,) int64 each, the sequence, its first event, the event after its last."""

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Pools:
    """The pieces of each length. The most recent piece of sequence i has number i, older ones have N and above.

    Attributes:
        lengths: (N,) lengths of the sequences.
        capacity: most events of a piece.
        cap: most events of a sequence.
        older: the pieces but the most recent one of each sequence that is split.
        numbers: (n,) int64, numbers of pieces, length after length.
        offsets: (m + 1,) int64, those of the k-th length are ``numbers[offsets[k]:offsets[k + 1]]``.
    """

    lengths: NDArray[np.integer]
    capacity: int
    cap: int
    older: Dealt
    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def deal(self, templates: Templates, of_pack: NDArray[np.int64], pack_offsets: NDArray[np.int64]) -> Dealt:
        """Fill packs of the given patterns with the next pieces of the lengths that they hold. Cost: O(n), chunked."""
        out = Dealt(*(np.empty(int(pack_offsets[-1]), dtype=np.int64) for _ in range(3)))
        taken = self.offsets[:-1].copy()
        first = 0
        while first < of_pack.size:
            start = int(pack_offsets[first])
            last = max(first + 1, int(np.searchsorted(pack_offsets, start + CHUNK, side="right")) - 1)
            sizes = np.diff(pack_offsets[first : last + 1])
            source = np.repeat(templates.offsets[of_pack[first:last]] - (pack_offsets[first:last] - start), sizes)
            source += np.arange(source.size)
            numbers = self._next(templates.ids[source], taken)
            for whole, part in zip(out, self._located(numbers), strict=True):
                whole[start : start + part.size] = part
            first = last
        return out

    def _next(self, ids: NDArray[np.integer], taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) numbers of the next pieces of these lengths; ``taken`` moves on."""
        order = np.argsort(ids, kind="stable")
        counts = np.bincount(ids, minlength=taken.size)
        before = np.cumsum(counts) - counts
        source = np.repeat(taken - before, counts)
        source += np.arange(source.size)
        taken += counts
        numbers = np.empty(ids.size, dtype=np.int64)
        numbers[order] = self.numbers[source]
        return numbers

    def _located(self, numbers: NDArray[np.int64]) -> Dealt:
        """Where the pieces with these numbers are."""
        many = self.lengths.size
        is_older = np.flatnonzero(numbers >= many)
        older = numbers[is_older] - many
        numbers[is_older] = self.older.order[older]
        stop = self.lengths[numbers].astype(np.int64)
        start = stop - np.minimum(stop, min(self.cap, self.capacity))
        start[is_older], stop[is_older] = self.older.start[older], self.older.stop[older]
        return Dealt(numbers, start, stop)


def pools_of(
    lengths: NDArray[np.integer], policy: BatchPolicy, pieces: Pieces, rng: np.random.Generator | None
) -> Pools:
    """Sort the pieces by length, shuffled inside each. Cost: O(N); lengths are small numbers: a radix sort."""
    cap = MAX_LENGTH if policy.max_length is None else policy.max_length
    older = _older(lengths, cap, pieces.capacity) if policy.overflow is Overflow.SPLIT else Dealt(*_NONE)
    ids = np.empty(lengths.size + older.order.size, dtype=id_type(pieces.values.size))
    for start in range(0, lengths.size, CHUNK):
        own = np.minimum(lengths[start : start + CHUNK].astype(np.int64), cap)
        part = np.searchsorted(pieces.values, np.minimum(own, pieces.capacity))
        if policy.overflow is Overflow.DROP:
            part[own > pieces.capacity] = pieces.values.size  # behind all others
        ids[start : start + own.size] = part
    ids[lengths.size :] = np.searchsorted(pieces.values, older.stop - older.start)
    offsets = np.concatenate(([0], np.cumsum(pieces.counts)))
    if rng is None:
        numbers = np.argsort(ids, kind="stable")
    else:
        numbers = random_order(rng, ids.size, lambda start, stop: ids[start:stop], pieces.values.size + 1)
    return Pools(lengths, pieces.capacity, cap, older, numbers, offsets)


_NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _older(lengths: NDArray[np.integer], cap: int, capacity: int) -> Dealt:
    """All pieces but the most recent one of each sequence above the capacity; the oldest is the short one."""
    long = np.flatnonzero(lengths > capacity) if cap > capacity else _NONE[0]
    whole = lengths[long].astype(np.int64)
    kept = np.minimum(whole, cap)
    more = -(-kept // capacity) - 1
    index, stop, first = (np.repeat(array, more) for array in (long, whole, whole - kept))
    ends = np.cumsum(more)
    stop -= capacity * (np.arange(1, index.size + 1) - np.repeat(ends - more, more))
    return Dealt(index, np.maximum(stop - capacity, first), stop)
