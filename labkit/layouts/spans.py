"""Spans: which events of each row of a batch are copied, and where they go."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray


class Spans:
    """A run of events of each row, and the slot where it begins.

        rows a b c | d e    first 1 0    kept 2 1    slots 0 4    ->    b c . . d

    Attributes:
        first: (B,) int64, the first event that is copied, counted within its row.
        kept: (B,) int64, how many are copied.
        slots: (B,) int64, slot of the first one in all slots of the batch; None: end to end.
        starts: (B,) int64, where each row begins in the columns that it lies in; None: every row is an array by itself.
    """

    def __init__(
        self,
        first: NDArray[np.int64],
        kept: NDArray[np.int64],
        slots: NDArray[np.int64] | None = None,
        starts: NDArray[np.int64] | None = None,
    ) -> None:
        """Keep the arrays; what follows from them is computed once for all fields, and only where it is needed."""
        self.first, self.kept, self.slots, self.starts = first, kept, slots, starts

    @cached_property
    def events(self) -> int:
        """T, the events that are copied."""
        return int(self.kept.sum())

    @property
    def place(self) -> NDArray[np.int64]:
        """(B,) place in the columns of the first event of each row that is copied."""
        if self.starts is None:
            raise AssertionError("rows that are arrays by themselves have no place in a column")
        return self.starts + self.first

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """(T,) place in the columns of each event."""
        return self._spread(self.place)

    @cached_property
    def target(self) -> NDArray[np.int64] | slice:
        """(T,) slot of each event; all slots in order where rows lie end to end."""
        return slice(None) if self.slots is None else self._spread(self.slots)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """(T,) 0, 1, .. of each row."""
        return self._spread(np.zeros_like(self.kept))

    def _spread(self, begin: NDArray[np.int64]) -> NDArray[np.int64]:
        """(T,) ``begin[b]``, ``begin[b] + 1``, .. of each row b."""
        # a place minus the number of the event, counted through the batch, is the same for a whole row
        places: NDArray[np.int64] = np.repeat(begin - np.cumsum(self.kept) + self.kept, self.kept)
        places += np.arange(places.size)
        return places
