"""Objective: what an epoch should have least of, as weights of figures that ``what_if`` gives exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.batching.costs import RowCost, row_costs
from labkit.batching.edge_charges import checked_number
from labkit.batching.what_if import WhatIf


@dataclass(frozen=True, slots=True)
class Objective:
    """What an epoch should have least of: a weighted sum of counts that ``what_if`` gives exactly.

    Attributes:
        per_slot: weight of a slot, ghost rows included (of a row's ``cost``, where one is given).
        per_batch: weight of a batch: a step costs this much, however small it is.
        per_bucket: weight of a bucket that has sequences: the charge for one more shape.
        per_dropped: weight of a sequence that ``drop_last`` leaves out; None: that of a row of the widest bucket, so
            that leaving out never pays.

    Raises:
        EdgesError: a weight that is negative or not finite.
    """

    per_slot: int | float = 1
    per_batch: int | float = 0
    per_bucket: int | float = 0
    per_dropped: int | float | None = None

    def __post_init__(self) -> None:
        """Refuse weights that are none."""
        for name in self.__slots__:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_number(name, getattr(self, name)))

    def of(self, scored: WhatIf, cost: RowCost | None = None) -> int | float:
        """The value of a what-if of a bucket strategy; ``cost`` as in ``optimal_edges``, None: slots."""
        widths = np.array([g.width for g in scored.groups])
        prices = row_costs(widths, cost, scored.sequences).tolist()
        used = [(g, price) for g, price in zip(scored.groups, prices, strict=True) if g.sequences]
        rows: int | float = sum(price * (g.slots // g.width) for g, price in used)
        dropped = sum(g.sequences_dropped for g, _ in used)
        batches = sum(g.batches for g, _ in used)
        value = self.per_slot * rows + self.per_batch * batches + self.per_bucket * len(used)
        return value + self.dropped(used[-1][1]) * dropped

    def dropped(self, widest: int | float) -> int | float:
        """``per_dropped`` with its default resolved."""
        return self.per_slot * widest if self.per_dropped is None else self.per_dropped
