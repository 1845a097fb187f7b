"""The jagged layout: rows end to end, values and offsets, no padding."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from labkit.errors import ShapeError


class JaggedBatch(NamedTuple):
    """A batch as rows end to end: no padding.

        values a b c d e    offsets 0 2 5 5    rows 2 (and a ghost row)    longest 3

    Attributes:
        values: (T,) or (T, D); for samples with named fields a dict of them, fixed-size fields being (R, ...).
        offsets: (R + 1,) int64; ghost rows are empty.
        rows: real rows; the R - rows ghost rows come last.
        longest: events of the longest row, known on the host (the offsets may be on a device); None: not counted.
    """

    values: Tensor | dict[str, Tensor]
    offsets: Tensor
    rows: int
    longest: int | None = None


def longest_row(batch: JaggedBatch) -> int:
    """Events of the longest row, at least 1, without asking a device.

    Raises:
        ShapeError: nobody counted, and the offsets are where counting would wait for a device.
    """
    if batch.longest is not None:
        return max(1, batch.longest)
    if batch.offsets.device.type != "cpu":
        raise ShapeError(
            f"the longest row of a jagged batch on {batch.offsets.device} is not known: set JaggedBatch.longest before "
            "the batch is moved, as collate does."
        )
    return max(1, int(batch.offsets.diff().max()))
