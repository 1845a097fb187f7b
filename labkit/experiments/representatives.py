"""Which batches of an epoch are looked at closely, and what the whole epoch comes to by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.plan import EpochPlan
from labkit.batching.strategies import Layout

#: Widths that are all looked at; of more, those at evenly spread ranks.
MOST_WIDTHS = 8
_RANKS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: A batch below this share of the median of its neighbours is one that was not filled.
_WHOLE = 0.9
#: Share of all batches that are neighbours on either side.
_NEAR = 1 / 16


@dataclass(frozen=True, eq=False, slots=True)
class Representatives:
    """Batches of an epoch that stand for all of it, one of each width (without padding: of each longest row).

    Attributes:
        batches: (k,) numbers of batches, by width.
        widths: (k,) their widths, increasing.
        complete: there is no other width in the epoch.
        largest: number of the batch with the most slots; the widest of several.
    """

    batches: tuple[int, ...]
    widths: tuple[int, ...]
    complete: bool
    largest: int
    _all: NDArray[np.int64]

    @classmethod
    def of_plan(cls, plan: EpochPlan) -> Representatives:
        """Choose them from an epoch with at least one batch.

        The last batch of a bucket or of the epoch is smaller than the others, and stands for none of them: of several
        of a width it is one of median size, and of many widths the nearest to its rank that is not much below its
        neighbours. Size is rows, where all rows of a batch are as wide, and events elsewhere.

        Cost: O(B log B).
        """
        widths = plan.padded_lengths
        size = plan.rows if plan.policy.spec.layout is Layout.PADDED else plan.batch_slots
        order = np.lexsort((size, widths))
        known, first = np.unique(widths[order], return_index=True)
        complete = known.size <= MOST_WIDTHS
        if complete:
            chosen = order[(first + np.append(first[1:], order.size)) // 2]  # the upper of two medians
        else:
            ranks = np.round(np.array(_RANKS) * (order.size - 1)).astype(np.int64)
            nearest = [_whole_near(rank, size[order]) for rank in ranks.tolist()]
            _, unique = np.unique(widths[order[nearest]], return_index=True)
            chosen = order[nearest][unique]
        largest = int(np.lexsort((widths, plan.batch_slots))[-1])
        return cls(tuple(chosen.tolist()), tuple(widths[chosen].tolist()), complete, largest, widths)

    def epoch_sum(self, found: Sequence[float]) -> float:
        """Sum over all batches of what was found in the chosen ones: (k,), linear in the width between them."""
        return float(np.interp(self._all, self.widths, found).sum())

    @property
    def note(self) -> str:
        """How the sum was made, for a figure's reason."""
        many = f"{len(self.batches)} batch{'es' if len(self.batches) > 1 else ''}"
        if self.complete:
            return f"from {many}, one of each width"
        return f"from {many} at ranks 0 to 1 of the widths, linear between them"


def _whole_near(rank: int, size: NDArray[np.int64]) -> int:
    """The rank nearest to ``rank`` whose size is not much below the median of those around; (B,) sizes by rank."""
    reach = max(2, round(_NEAR * size.size))
    low = max(0, rank - reach)
    around = size[low : rank + reach + 1]
    whole = low + np.flatnonzero(around >= _WHOLE * np.median(around))
    return int(whole[np.argmin(np.abs(whole - rank))])
