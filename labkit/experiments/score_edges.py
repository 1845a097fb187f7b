"""What ``labkit score-edges`` does: the edges of another tool and as many optimal ones, scored on the same lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.batching.edges import optimal_edges
from labkit.batching.fields import whole_number
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.batching.what_if import WhatIf, what_if
from labkit.errors import EdgesError
from labkit.experiments.what_if_report import lengths_record, strategy_record
from labkit.interchange.foreign import ABOVE, ForeignEdges
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class EdgeScore:
    """Two sets of edges side by side; every row is padded to the edge of its bucket.

    Attributes:
        histogram: the lengths, under the cap.
        foreign: what was read.
        above: sequences above the last edge: neither set is scored on them.
        given: figures of the edges that were read.
        best: figures of as many optimal edges.
    """

    histogram: LengthHistogram
    foreign: ForeignEdges
    above: int
    given: WhatIf
    best: WhatIf

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        given, best = _edges(self.given), _edges(self.best)
        return (
            f"your {_counted(len(given))} {_wastes(len(given))} {self.given.padding_ratio:.1%}, "
            f"the best {len(best)} {_wastes(len(best))} {self.best.padding_ratio:.1%}"
        )

    @property
    def above_note(self) -> str | None:
        """What becomes of the sequences that no bucket holds; None where every one is in a bucket."""
        if not self.above:
            return None
        return (
            f"{self.above:,} of {self.histogram.sequences:,} sequences are above the last edge "
            f"{self.foreign.edges[-1]} and not scored: {ABOVE[self.foreign.format]}"
        )


def score_edges(histogram: LengthHistogram, foreign: ForeignEdges, max_length: int | None = None) -> EdgeScore:
    """Score edges that were read against the best of the same number, under ``bucket_rows``.

    Args:
        histogram: of the data set.
        foreign: as ``read_edges`` gives them; an open bucket ends at the longest length.
        max_length: cap on the lengths, applied first.

    Raises:
        EdgesError: no sequence is within the edges.
        PolicyError: a ``max_length`` that is none.
    """
    cap = None if max_length is None else whole_number("max_length", max_length)
    capped = histogram.capped(cap)
    edges = foreign.edges_on(capped)
    within = int(np.searchsorted(capped.values, edges[-1], side="right"))
    if not within:
        raise EdgesError(
            f"no sequence is within the edges: the last is {edges[-1]}, the shortest length {capped.values[0]}."
        )
    covered = LengthHistogram(capped.values[:within], capped.counts[:within])
    best = optimal_edges(covered, len(edges))
    scores = (what_if(covered, BatchPolicy(Strategy.BUCKET_ROWS, bucket_edges=e)) for e in (edges, best.edges))
    return EdgeScore(capped, foreign, foreign.above(capped), *scores)


def score_report(score: EdgeScore) -> dict[str, Any]:
    """What ``labkit score-edges --json`` prints."""
    return {
        "lengths": lengths_record(score.histogram),
        "format": str(score.foreign.format),
        "bucket_edges": list(_edges(score.given)),
        "batch_sizes": None if score.foreign.batch_sizes is None else list(score.foreign.batch_sizes),
        "open_end": score.foreign.open_end,
        "sequences_above": score.above,
        "padding_ratio": score.given.padding_ratio,
        "best_bucket_edges": list(_edges(score.best)),
        "best_padding_ratio": score.best.padding_ratio,
        "verdict": score.verdict,
        "strategies": [strategy_record(score.given), strategy_record(score.best)],
    }


def score_text(score: EdgeScore) -> str:
    """The answer as lines."""
    lines = [
        f"{score.verdict} (rows padded to the edge of their bucket)",
        f"yours {_list(_edges(score.given))}: {score.given.slots:,} slots",
        f"best  {_list(_edges(score.best))}: {score.best.slots:,} slots",
    ]
    return "\n".join([*lines, *([score.above_note] if score.above_note else [])])


def _edges(scored: WhatIf) -> tuple[int, ...]:
    return scored.policy.bucket_edges or ()


def _counted(edges: int) -> str:
    return f"{edges} edge{'s' if edges > 1 else ''}"


def _wastes(edges: int) -> str:
    return "waste" if edges > 1 else "wastes"


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
