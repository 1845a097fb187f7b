"""LaunchConfig: up to which length a row is short, medium or long, and how that is chosen from a histogram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from labkit.errors import KernelLaunchError
from labkit.gpu.regimes import WARPS, group_lanes, vector_features
from labkit.lengths.histogram import LengthHistogram

#: Warps at work at once: 132 multiprocessors with 6 blocks of 8 warps (40 registers a thread). Source: NVIDIA H100
#: Tensor Core GPU Architecture, "H100 SM architecture". Half of it elsewhere moves a threshold by a power of two.
_RESIDENT_WARPS = 132 * 6 * WARPS

#: Steps (one event by each group of a warp) that a row costs beside its events: order, two offsets, the result.
_ROW_STEPS = 4

#: Steps that a block costs beside that: a barrier, and one warp that adds up what eight have.
_BLOCK_STEPS = 8

#: The most events of a row that a warp is given. Medium rows are in no order of length (bin_rows.cu), so one of
#: thousands of events may start last and then run alone, which the model below, where all start at once, leaves out.
_MOST_OF_A_WARP = 512

#: A step on a busy device takes 512 B * resident warps / 3.35 TB/s = 0.97 us; one that nobody competes with takes the
#: latency of memory, 0.6 us, with four under way at a time. So a row that is still running when all others are done
#: costs this share of a busy step for each of its own.
_LONELY_STEP = 0.15


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """Thresholds of the regimes; a row is of the first whose maximum its length does not exceed.

    The defaults suit D = 64 and power-law histories; ``for_histogram`` chooses.

    Attributes:
        short_max: events; up to here a group of lanes does a row.
        medium_max: events; up to here a warp.
        long_max: events; up to here a block. What is longer is cut into pieces of this many, a block each.
        longest: events; no row is longer. None: not known. Within ``long_max`` there are no giants, and what
            they need is neither allocated nor launched; a longer row after all is done by a block.
    """

    short_max: int = 32
    medium_max: int = 128
    long_max: int = 2048
    longest: int | None = None

    def __post_init__(self) -> None:
        """Check the order of the thresholds."""
        if not 0 <= self.short_max <= self.medium_max <= self.long_max < 2**31 or self.long_max < 1:
            raise KernelLaunchError(
                "thresholds must not decrease: expected 0 <= short_max <= medium_max <= long_max < 2**31 and "
                f"long_max >= 1, got {self.short_max}, {self.medium_max}, {self.long_max}. Use LaunchConfig()."
            )

    @property
    def thresholds(self) -> tuple[int, int, int]:
        """The three maxima."""
        return self.short_max, self.medium_max, self.long_max

    def giants(self, events: int) -> int:
        """The most giant rows that ``events`` events can hold."""
        possible = self.longest is None or self.longest > self.long_max
        return events // (self.long_max + 1) if possible else 0

    @classmethod
    def for_histogram(cls, histogram: LengthHistogram, dim: int, *, events: int | None = None) -> LaunchConfig:
        """The thresholds with the least modelled time for rows of these lengths.

        Time = steps of all rows over the warps at work at once, and the steps of the row that ends last: sharing a row
        among more lanes costs steps and shortens the last row. No row above 512 events is left to a warp.

        Args:
            histogram: lengths of the rows.
            dim: D.
            events: T of a batch; None: all events are one batch.

        Raises:
            KernelLaunchError: a dim or a number of events below 1.

        Cost: about 100 passes over the distinct lengths.
        """
        if dim < 1 or (events is not None and events < 1):
            raise KernelLaunchError(f"dim and events must be at least 1: got dim {dim}, events {events}.")
        batch = min(1.0, (events or histogram.events) / max(1, histogram.events))
        found = min(_candidates(), key=lambda maxima: (_modelled_steps(histogram, dim, batch, maxima), maxima))
        return cls(*found, longest=histogram.max)


def _candidates() -> Iterator[tuple[int, int, int]]:
    powers = [2**power for power in range(3, 14)]
    tried = combinations_with_replacement(powers, 3)
    return ((a, b, c) for a, b, c in tried if a <= 256 and b <= _MOST_OF_A_WARP and c >= 1024)


def _modelled_steps(histogram: LengthHistogram, dim: int, batch: float, maxima: tuple[int, int, int]) -> float:
    """Busy steps of the device for the share ``batch`` of the rows."""
    groups = 32 // group_lanes(dim // vector_features(dim))
    short_max, medium_max, long_max = maxima
    lengths, merge = histogram.values.astype(np.float64), np.log2(groups)
    pieces = np.ceil(lengths / long_max)
    of_warp = np.ceil(lengths / groups) + _ROW_STEPS + merge
    of_block = np.ceil(np.minimum(lengths, long_max) / (WARPS * groups)) + _ROW_STEPS + merge + _BLOCK_STEPS
    of_combining = np.ceil(pieces / (WARPS * groups)) + _ROW_STEPS + merge + _BLOCK_STEPS
    regimes = [lengths <= short_max, lengths <= medium_max, lengths <= long_max]
    alone = lengths + _ROW_STEPS
    steps = np.select(regimes, [alone / groups, of_warp, WARPS * of_block], WARPS * (pieces * of_block + of_combining))
    last = np.select(regimes, [alone, of_warp, of_block], of_block + of_combining)
    return float(batch * (steps @ histogram.counts) / _RESIDENT_WARPS + _LONELY_STEP * last.max())
