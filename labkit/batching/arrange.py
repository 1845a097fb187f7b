"""The array work of an epoch plan: group, shuffle, cut and gather, in chunks, so that temporaries stay small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labkit.batching.groups import Groups, round_up
from labkit.batching.random_order import Tags, random_order
from labkit.lengths.validate import CHUNK

#: Up to this longest length the group of a length is looked up in a table; above it, by bisection.
_TABLE_LIMIT = 1 << 22
#: Ranges of this many positions on average are copied one by one; shorter ones are gathered by computed positions.
_LONG_RANGE = 64


def by_group(
    lengths: NDArray[np.integer],
    groups: Groups,
    rng: np.random.Generator | None,
    counts: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices sorted by group, shuffled inside each; dropped sequences left out.

    Args:
        lengths: (N,) lengths.
        groups: the groups.
        rng: of the shuffle; None keeps the order of the indices inside each group.
        counts: (K,) sequences of each group where they are known already; None: counted.

    Returns:
        order (n,) int64 and starts (K + 1,) int64: group k is ``order[starts[k]:starts[k + 1]]``.

    Cost: one sort; without a shuffle groups are small integers, so that it is a radix sort.
    """
    n, many = lengths.size, groups.edges.size
    if many == 1 and not groups.drops_longer:
        return np.arange(n) if rng is None else random_order(rng, n), np.array([0, n])
    tags = _group_lookup(lengths, groups)
    if counts is None:
        counts = np.bincount(tags(0, n), minlength=many)[:many]
    starts = np.concatenate(([0], np.cumsum(counts)))
    order = np.argsort(tags(0, n), kind="stable") if rng is None else random_order(rng, n, tags, many + 1)
    return order[: starts[-1]], starts


def _group_lookup(lengths: NDArray[np.integer], groups: Groups) -> Tags:
    """Groups of lengths[start:stop] in the smallest unsigned type, K for dropped ones; by table where that is small."""
    many = groups.edges.size
    kind = np.uint8 if many < 2**8 else np.uint16 if many < 2**16 else np.int64
    longest = int(lengths.max())
    table: NDArray[np.integer] | None = None
    if longest < min(_TABLE_LIMIT, 8 * lengths.size):
        table = groups.of_lengths(np.arange(longest + 1)).astype(kind)

    def tags(start: int, stop: int) -> NDArray[np.integer]:
        own = lengths[start:stop]
        found: NDArray[np.integer] = groups.of_lengths(own).astype(kind) if table is None else np.take(table, own)
        return found

    return tags


def spans(low: NDArray[np.int64], high: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Positions low[i], ..., high[i] - 1 of all i, one after another, in chunks of whole ranges.

    Yields:
        first, stop and the positions of the ranges first .. stop - 1, (n,) int64.
    """
    sizes = high - low
    ends = np.cumsum(sizes)
    shift = low - (ends - sizes)  # position in order minus position in the concatenation
    first = 0
    while first < sizes.size:
        start = int(ends[first] - sizes[first])
        stop = max(first + 1, int(np.searchsorted(ends, start + CHUNK, side="right")))
        positions = np.repeat(shift[first:stop], sizes[first:stop])
        positions += np.arange(start, start + positions.size)
        yield first, stop, positions
        first = stop


def gather(order: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate ``order[low[i]:high[i]]`` for all i. Cost: O(n), chunked."""
    out = np.empty(int((high - low).sum()), dtype=np.int64)
    if low.size and out.size >= _LONG_RANGE * low.size:
        return np.concatenate([order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True)], out=out)
    start = 0
    for _, _, positions in spans(low, high):
        np.take(order, positions, out=out[start : start + positions.size])
        start += positions.size
    return out


def count_kept(lengths: NDArray[np.integer], order: NDArray[np.int64], groups: Groups) -> tuple[int, int]:
    """Events kept and sequences truncated of the sequences in ``order``. Cost: O(n), chunked."""
    kept = truncated = 0
    for start in range(0, order.size, CHUNK):
        own = lengths[order[start : start + CHUNK]].astype(np.int64)
        limit = groups.limits[groups.of_lengths(own)]
        kept += int(np.minimum(own, limit).sum())
        truncated += int(np.count_nonzero(own > limit))
    return kept, truncated


def batch_widths(
    lengths: NDArray[np.integer],
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    limits: NDArray[np.int64],
    multiple: int,
) -> NDArray[np.int64]:
    """(B,) int64: longest kept row of each batch, rounded up to the multiple, at least 1."""
    if not limits.size:
        return np.zeros(0, dtype=np.int64)
    longest = np.maximum.reduceat(lengths[order], offsets[:-1]).astype(np.int64)
    return round_up(np.minimum(longest, limits), multiple)


def kept_lengths(lengths: NDArray[np.integer], order: NDArray[np.int64], cap: int | None) -> NDArray[np.integer]:
    """(n,) capped lengths in the given order, in the dtype of ``lengths``."""
    own: NDArray[np.integer] = lengths[order]
    if cap is None or cap > np.iinfo(own.dtype).max:  # above what int8 or uint8 can hold, nothing is cut
        return own
    np.minimum(own, cap, out=own)
    return own


def fill_budget(lengths: NDArray[np.integer], budget: int, max_rows: int) -> NDArray[np.int64]:
    """(B + 1,) int64 offsets of batches filled in order until the next row would not fit the budget or the row limit.

    Every length must be at most ``budget``. Cost: O(N) for the sums and a bisection a batch.
    """
    sums = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    total, offsets, start = lengths.size, [0], 0
    search = sums.searchsorted
    while start < total:
        stop = int(search(sums[start] + budget, side="right")) - 1
        start = min(stop, start + max_rows, total)
        offsets.append(start)
    return np.array(offsets, dtype=np.int64)
