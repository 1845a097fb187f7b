"""PieceIndex: an index of a data set that also says which events, and which pack of the batch they go to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


class PieceIndex(int):
    """Index of a sequence, with the piece of it that is meant.

        PieceIndex(7, row=2, start=0, stop=4)    events 0 .. 3 of sequence 7, in the third pack of the batch

    It is an int wherever one is wanted, and comes through the queues of DataLoader workers whole, forked or spawned.

    Attributes:
        row: pack of the batch, from 0.
        start: first event of the piece.
        stop: the event after its last one.
    """

    row: int
    start: int
    stop: int

    def __new__(cls, index: int, row: int, start: int, stop: int) -> Self:
        """Make one; a later change of ``row``, ``start`` or ``stop`` would be a mistake."""
        found = super().__new__(cls, index)
        found.row, found.start, found.stop = row, start, stop
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all four numbers."""
        return type(self), (int(self), self.row, self.start, self.stop)

    def __repr__(self) -> str:
        """All four numbers."""
        return f"PieceIndex({int(self)}, row={self.row}, start={self.start}, stop={self.stop})"


def batch_indices(plan: EpochPlan, i: int) -> list[int]:
    """Batch i of a plan as DataLoader wants it: a list of ints, which are ``PieceIndex`` where sequences are packed.

    Cost: O(sequences of the batch), and two bisections.
    """
    indices: list[int] = plan[i].tolist()
    if plan.pack_offsets is None or plan.event_start is None or plan.event_stop is None:
        return indices
    low, high = plan.batch_offsets[i : i + 2].tolist()
    first, last = plan.pack_offsets.searchsorted([low, high]).tolist()
    sizes = (plan.pack_offsets[first + 1 : last + 1] - plan.pack_offsets[first:last]).tolist()
    rows = [row for row, size in enumerate(sizes) for _ in range(size)]
    starts, stops = plan.event_start[low:high].tolist(), plan.event_stop[low:high].tolist()
    return [PieceIndex(*piece) for piece in zip(indices, rows, starts, stops, strict=True)]
