"""One judge for all: edges of any convention made comparable, and the figures of any list of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.lengths.histogram import LengthHistogram

#: What float boundaries may be off by: 4095.9999999 is meant to be 4096.
_ROUNDING = 1e-6


def up_to(bounds: Sequence[float]) -> list[int]:
    """Whole edges of boundaries that belong to the bucket below them."""
    return [floor(bound + _ROUNDING) for bound in bounds]


def below(bounds: Sequence[float]) -> list[int]:
    """Whole edges of boundaries that belong to the bucket above them: 44 says up to 43."""
    return [ceil(bound - _ROUNDING) - 1 for bound in bounds]


def covering(edges: Sequence[int], buckets: int, longest: int) -> list[int]:
    """At most ``buckets`` edges, the last of them the longest length: added where there is room, else moved up."""
    if len(edges) > buckets:
        raise ValueError(f"{buckets} buckets allowed, {len(edges)} edges given")
    kept = sorted({edge for edge in edges if edge < longest})
    if len(kept) == buckets:
        kept.pop()
    return [*kept, longest]


def tight(edges: Sequence[int], histogram: LengthHistogram) -> tuple[int, ...]:
    """Each edge lowered to the longest length of its bucket; the edges of empty buckets are gone."""
    ends = np.searchsorted(histogram.values, edges, side="right")
    return tuple(int(histogram.values[end - 1]) for end in np.unique(ends[ends > 0]))


def padded_slots(edges: Sequence[int], histogram: LengthHistogram) -> int:
    """Slots of an epoch in which every sequence is padded to the edge of its bucket."""
    bucket = np.searchsorted(np.asarray(edges), histogram.values, side="left")
    if bucket.max() >= len(edges):
        raise ValueError(f"a length of {histogram.max} is above the last edge {edges[-1]}")
    return int((np.maximum(np.asarray(edges), 1)[bucket] * histogram.counts).sum())


@dataclass(frozen=True)
class BatchFigures:
    """What a list of batches comes to, when every batch is padded to its own longest sequence.

    Attributes:
        batches: how many, empty ones not counted.
        slots: of all batches.
        largest: slots of the largest batch.
        events: of all sequences in them.
        missing: sequences in no batch.
        repeated: sequences in more than one.
    """

    batches: int
    slots: int
    largest: int
    events: int
    missing: int
    repeated: int

    @property
    def padding_ratio(self) -> float:
        return 1 - self.events / self.slots if self.slots else 0.0

    @property
    def covers(self) -> bool:
        """Every sequence exactly once."""
        return self.missing == 0 and self.repeated == 0

    def over(self, budget: int) -> int:
        """Slots that the largest batch has above the budget."""
        return max(0, self.largest - budget)


def judge(batches: Sequence[ArrayLike], lengths: NDArray[np.int32]) -> BatchFigures:
    """The figures of batches, each a list of indices."""
    groups = [array for array in (np.asarray(batch, dtype=np.int64) for batch in batches) if array.size]
    if not groups:
        return BatchFigures(0, 0, 0, 0, missing=lengths.size, repeated=0)
    order = np.concatenate(groups)
    sizes = np.array([group.size for group in groups])
    own = lengths[order].astype(np.int64)
    slots = sizes * np.maximum(np.maximum.reduceat(own, np.cumsum(sizes) - sizes), 1)
    times = np.bincount(order, minlength=lengths.size)
    return BatchFigures(
        batches=len(groups),
        slots=int(slots.sum()),
        largest=int(slots.max()),
        events=int(own.sum()),
        missing=int(np.count_nonzero(times == 0)),
        repeated=int(np.count_nonzero(times > 1)),
    )
