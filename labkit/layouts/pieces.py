"""Pieces of samples, and the packs that they go to: one by one, or a whole batch of them as columns."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray


class PieceSample(NamedTuple):
    """A sample of the data set, and which piece of it goes to which pack of the batch.

    Attributes:
        sample: of the data set, whole.
        row: pack of the batch.
        start: first event of the piece.
        stop: the event after its last one.
    """

    sample: Any
    row: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False, slots=True)
class Pieces(Sequence[PieceSample]):
    """The pieces of a batch; a sequence of ``PieceSample``.

    Attributes:
        samples: S samples, whole, one a piece: a list, or ``RaggedColumns``.
        rows: (S,) int64, pack of each piece.
        starts: (S,) int64, its first event.
        stops: (S,) int64, the event after its last one.
    """

    samples: Sequence[Any]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, pieces: Sequence[PieceSample]) -> Pieces:
        """Pieces that came one by one."""
        samples, *places = zip(*pieces, strict=True)
        return cls(samples, *(np.array(each, np.int64) for each in places))

    def __len__(self) -> int:
        """S, the number of pieces."""
        return self.rows.size

    @overload
    def __getitem__(self, index: int) -> PieceSample: ...
    @overload
    def __getitem__(self, index: slice) -> Pieces: ...
    def __getitem__(self, index: int | slice) -> PieceSample | Pieces:
        """One piece, or several."""
        places = (self.rows[index], self.starts[index], self.stops[index])
        if isinstance(index, slice):
            return Pieces(self.samples[index], *places)
        return PieceSample(self.samples[operator.index(index)], *map(int, places))

    def __iter__(self) -> Iterator[PieceSample]:
        """The pieces, one by one."""
        places = (self.rows.tolist(), self.starts.tolist(), self.stops.tolist())
        return map(PieceSample, self.samples, *places)
