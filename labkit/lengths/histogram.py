"""LengthHistogram: all that batching needs to know of a data set, in O(distinct lengths) memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.errors import LengthsError
from labkit.lengths.validate import CHUNK, MAX_LENGTH, checked_lengths
from labkit.units import shown

if TYPE_CHECKING:
    from os import PathLike

#: Up to this longest length the counts go straight into one table (32 MiB of int64); above it, they are sorted.
_DENSE_LIMIT = 1 << 22


@dataclass(frozen=True, eq=False)
class LengthHistogram:
    """How many sequences have which length.

        lengths 3 1 3 0    ->    values 0 1 3    counts 1 1 2

    Attributes:
        values: (m,) int64, the distinct lengths, strictly increasing, 0 <= value <= 2**31 - 1.
        counts: (m,) int64, how many sequences have that length, each >= 1.

    Everything derived from the two is cached; the arrays are read-only.
    """

    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check the two arrays and freeze them."""
        values = checked_lengths(self.values, what="histogram lengths").astype(np.int64)
        counts = _checked_counts(self.counts, values)
        order = np.argsort(values, kind="stable")
        values, counts = values[order], counts[order]
        repeated = np.flatnonzero(values[1:] == values[:-1])
        if repeated.size:
            raise LengthsError(
                f"histogram length {values[repeated[0]]} appears twice: give each length once, with its total count."
            )
        for name, array in (("values", values), ("counts", counts)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        # the sums that everything below relies on must fit int64 with room for products by a width
        if float(counts.sum(dtype=np.float64)) * max(1.0, float(values[-1])) >= 2.0**62:
            raise LengthsError(
                f"histogram too large: {counts.sum(dtype=np.float64):.3g} sequences of up to {values[-1]} events do "
                "not fit 64-bit sums. Scale the counts down."
            )

    @classmethod
    def from_lengths(cls, lengths: ArrayLike) -> LengthHistogram:
        """Count the distinct lengths of (N,) sequences.

        Raises:
            LengthsError: what ``checked_lengths`` refuses (negative, NaN, fractional, too large, empty).

        Cost: O(N + max length), chunked: no temporary as large as the input. O(N log N) where the longest length is
        above 4 million and above 8 N.
        """
        return cls.from_checked(checked_lengths(lengths))

    @classmethod
    def from_checked(cls, array: NDArray[Any]) -> LengthHistogram:
        """As ``from_lengths``, for an array that ``checked_lengths`` gave: it is not looked through again."""
        longest = int(array.max())
        if longest > max(_DENSE_LIMIT, 8 * array.size):
            values, counts = np.unique(array, return_counts=True)
            return cls(values.astype(np.int64), counts.astype(np.int64))
        table = np.zeros(longest + 1, dtype=np.int64)
        step = max(CHUNK, longest + 1)
        for start in range(0, array.size, step):
            part = np.bincount(array[start : start + step])
            table[: part.size] += part
        values = np.flatnonzero(table)
        return cls(values.astype(np.int64), table[values])

    @classmethod
    def from_csv(cls, path: str | PathLike[str]) -> LengthHistogram:
        """Read a histogram CSV: ``length,count`` a line, with or without that header. See ``labkit.lengths.load``."""
        from labkit.lengths.load import read_histogram_csv

        return cls(*read_histogram_csv(Path(path)))

    @classmethod
    def from_events(cls, table: Any, user: str = "user_id", users: Any | None = None) -> LengthHistogram:
        """Count the events of each user in an event table: one row an event. See ``labkit.lengths.load``.

        Args:
            table: path of a Parquet or CSV file (globs too), or a pandas, polars or Arrow table.
            user: the column that names the user.
            users: optional table of all users with the same column; users without events count as length 0.
        """
        from labkit.lengths.load import count_events

        return cls(*count_events(table, user=user, users=users))

    # -- sums ---------------------------------------------------------------------------------------------------

    @cached_property
    def sequences(self) -> int:
        """N, the number of sequences."""
        return int(self.counts.sum())

    @cached_property
    def events(self) -> int:
        """T, the number of events (tokens) of all sequences."""
        return int(self.event_sums[-1])

    @cached_property
    def max(self) -> int:
        """The longest length."""
        return int(self.values[-1])

    @cached_property
    def mean(self) -> float:
        """Events per sequence."""
        return self.events / self.sequences

    @property
    def distinct(self) -> int:
        """m, the number of distinct lengths."""
        return int(self.values.size)

    @cached_property
    def count_sums(self) -> NDArray[np.int64]:
        """(m + 1,) int64: ``count_sums[i]`` sequences are shorter than ``values[i]``; the last is N."""
        return _prefix_sums(self.counts)

    @cached_property
    def event_sums(self) -> NDArray[np.int64]:
        """(m + 1,) int64: events of the sequences shorter than ``values[i]``; the last is T."""
        return _prefix_sums(self.counts * self.values)

    # -- statistics ---------------------------------------------------------------------------------------------

    def quantile(self, q: float) -> float:
        """The q-quantile of the lengths, 0 <= q <= 1, by NumPy's linear rule, without expanding the histogram.

        Equal to ``np.quantile(np.repeat(values, counts), q)`` to the last bit.

        Raises:
            LengthsError: q outside 0 .. 1 or NaN.
        """
        return self.quantiles([q])[0]

    def quantiles(self, qs: Sequence[float] | NDArray[np.float64]) -> list[float]:
        """Several quantiles at once; see ``quantile``. Cost: O(len(qs) log m)."""
        q = np.asarray(qs, dtype=np.float64)
        if q.ndim != 1 or not bool(np.all((q >= 0) & (q <= 1))):
            raise LengthsError(f"quantiles must lie within 0 .. 1: got {shown(list(map(float, np.ravel(q))))}.")
        position = (self.sequences - 1) * q
        below = np.floor(position)
        part = position - below
        low = self._at(below.astype(np.int64))
        high = self._at(np.minimum(below.astype(np.int64) + 1, self.sequences - 1))
        gap = high - low
        # the same two-sided interpolation as numpy's _lerp, so that the last bit agrees
        return [float(x) for x in np.where(part >= 0.5, high - gap * (1 - part), low + gap * part)]

    def _at(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Lengths at the given 0-based ranks of the sorted sequences."""
        return self.values[np.searchsorted(self.count_sums, ranks, side="right") - 1].astype(np.float64)

    @cached_property
    def gini(self) -> float:
        """Gini coefficient of the lengths: 0 all equal, towards 1 where few users hold most events; 0 without events.

        Source: sum form of the mean absolute difference, sum_ij |l_i - l_j| / (2 N**2 mean).
        """
        if self.events == 0:
            return 0.0
        before = self.event_sums[:-1].astype(np.float64)
        own = (self.counts * self.values).astype(np.float64)
        area = float(np.sum(self.counts * (before + 0.5 * own)))  # under the Lorenz curve, times N and T
        return max(0.0, 1.0 - 2.0 * area / (self.sequences * self.events))

    # -- derived histograms -------------------------------------------------------------------------------------

    def capped(self, max_length: int | None) -> LengthHistogram:
        """The histogram of ``min(length, max_length)``; itself where nothing is longer, or without a cap.

        Raises:
            LengthsError: max_length below 0.
        """
        if max_length is None or max_length >= self.max:
            return self
        if max_length < 0:
            raise LengthsError(f"max_length must be 0 or more: got {max_length}.")
        keep = int(np.searchsorted(self.values, max_length, side="left"))
        tail = self.sequences - int(self.count_sums[keep])
        return LengthHistogram(np.append(self.values[:keep], max_length), np.append(self.counts[:keep], tail))

    def merge(self, other: LengthHistogram) -> LengthHistogram:
        """The histogram of both data sets together."""
        values = np.union1d(self.values, other.values)
        counts = np.zeros(values.size, dtype=np.int64)
        for part in (self, other):
            counts[np.searchsorted(values, part.values)] += part.counts
        return LengthHistogram(values, counts)

    def expand(self) -> NDArray[np.int32]:
        """(N,) int32: one length a sequence, ascending. Cost: O(N) memory."""
        return np.repeat(self.values.astype(np.int32), self.counts)

    # -- identity -----------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the lines ``length,count`` in ascending order: independent of the order of the sequences."""
        lines = "".join(f"{v},{c}\n" for v, c in zip(self.values.tolist(), self.counts.tolist(), strict=True))
        return hashlib.sha256(lines.encode("ascii")).hexdigest()

    def __eq__(self, other: object) -> bool:
        """Equal where every length has the same count."""
        if not isinstance(other, LengthHistogram):
            return NotImplemented
        return np.array_equal(self.values, other.values) and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        """By content."""
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        """The figures that tell one data set from another."""
        return (
            f"LengthHistogram({self.sequences} sequences, {self.events} events, mean {self.mean:.2f}, "
            f"P50 {self.quantile(0.5):g}, P99 {self.quantile(0.99):g}, max {self.max}, {self.distinct} distinct)"
        )


def _prefix_sums(array: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.zeros(array.size + 1, dtype=np.int64)
    np.cumsum(array, out=sums[1:])
    sums.flags.writeable = False
    return sums


def _checked_counts(counts: ArrayLike, values: NDArray[np.int64]) -> NDArray[np.int64]:
    array = np.asarray(counts)
    if array.shape != values.shape:
        raise LengthsError(f"a histogram needs one count per length: got {values.size} lengths, {array.size} counts.")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.rint(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise LengthsError(f"histogram counts must be whole numbers: got dtype {array.dtype}.")
    if array.dtype == np.uint64 and int(array.max()) >= 2**63:
        raise LengthsError(f"histogram count {int(array.max())} does not fit 64 bits.")
    bad = np.flatnonzero(array < 1)
    if bad.size:
        i = int(bad[0])
        raise LengthsError(
            f"histogram count of length {values[i]} is {array[i]}: every count must be 1 or more. Leave the line out."
        )
    return array.astype(np.int64)


__all__ = ["MAX_LENGTH", "LengthHistogram"]
