"""ForeignEdges: bucket edges as another tool has them, put into the one rule of labkit: ``e[k-1] < length <= e[k]``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from labkit.lengths.histogram import LengthHistogram


class EdgeFormat(StrEnum):
    """Whose edges they are."""

    LHOTSE = "lhotse"
    TF_DATA = "tf-data"
    CAPTURE_SIZES = "capture-sizes"


#: What the tool does with a sequence above the last edge, where it has no open bucket for it.
ABOVE = {
    EdgeFormat.LHOTSE: "refused by the sampler, or filtered out by max_duration",
    EdgeFormat.TF_DATA: "in the open bucket",
    EdgeFormat.CAPTURE_SIZES: "run without a graph and without padding",
}


@dataclass(frozen=True, slots=True)
class ForeignEdges:
    """Edges of another tool.

    Attributes:
        format: whose they are.
        edges: upper-inclusive, strictly increasing, whole numbers >= 1.
        batch_sizes: rows of each bucket, of the open one too; None where the file has none.
        open_end: what is longer than the last edge has a bucket of its own, as wide as the longest of it.
    """

    format: EdgeFormat
    edges: tuple[int, ...]
    batch_sizes: tuple[int, ...] | None = None
    open_end: bool = False

    def edges_on(self, histogram: LengthHistogram) -> tuple[int, ...]:
        """The edges on these lengths: an open bucket that holds sequences ends at the longest of them."""
        if self.open_end and histogram.max > self.edges[-1]:
            return (*self.edges, histogram.max)
        return self.edges

    def above(self, histogram: LengthHistogram) -> int:
        """How many sequences no bucket holds."""
        if self.open_end:
            return 0
        covered = np.searchsorted(histogram.values, self.edges[-1], side="right")
        return histogram.sequences - int(histogram.count_sums[covered])
