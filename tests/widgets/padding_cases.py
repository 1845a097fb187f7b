"""Random cases that ``padding.mjs`` and ``what_if`` must agree on: histograms, edges, rules, and the figures of Python.

``python -m tests.widgets.padding_cases`` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from labkit.batching.edges import optimal_edges
from labkit.batching.strategies import Strategy
from labkit.batching.what_if import WhatIf, what_if
from labkit.errors import PolicyError
from labkit.experiments.lineup import Lineup
from labkit.lengths.histogram import LengthHistogram
from labkit.widgets.edge_editor import rules_of

FILE = Path(__file__).with_name("padding_cases.json")
CASES = 240


def cases() -> list[dict[str, Any]]:
    rng = np.random.default_rng(20)
    return [_case(rng) for _ in range(CASES)]


def _case(rng: np.random.Generator) -> dict[str, Any]:
    distinct = int(rng.integers(1, 40))
    values = np.sort(rng.choice(int(rng.integers(distinct, 300)), size=distinct, replace=False))
    counts = rng.integers(1, rng.choice([3, 100, 10**9]), size=distinct)
    histogram = LengthHistogram(values, counts)
    edges = sorted(rng.choice(np.arange(1, 320), size=int(rng.integers(1, 7)), replace=False).tolist())
    if rng.random() < 0.6:
        edges = sorted({*edges, max(1, histogram.max)})
    lineup = Lineup(
        bucket_edges=tuple(edges),
        token_budget=int(rng.choice([40, 300, 5000])),
        max_length=int(rng.integers(1, 310)) if rng.random() < 0.4 else None,
        overflow=str(rng.choice(["error", "truncate", "drop"])),
        oversize=str(rng.choice(["error", "single_row"])),
        row_multiple=int(rng.choice([1, 1, 4, 8])),
        length_multiple=int(rng.choice([1, 1, 8, 16])),
    )
    best = optimal_edges(histogram.capped(lineup.max_length), 6, length_multiple=lineup.length_multiple)
    return {
        "values": values.tolist(),
        "counts": counts.tolist(),
        "edges": edges,
        "rules": {**rules_of(lineup), "cap": lineup.max_length},
        "eager": _figures(histogram, lineup, Strategy.BUCKET_BUDGET),
        "static": _figures(histogram, lineup, Strategy.BUCKET_GRAPH),
        "curve": list(best.curve or ()),
    }


def _figures(histogram: LengthHistogram, lineup: Lineup, strategy: Strategy) -> dict[str, Any]:
    """What Python says: the figures, or why it refuses the policy."""
    try:
        found: WhatIf = what_if(histogram, lineup.policy(strategy, lineup.edges(histogram)))
    except PolicyError as error:
        return {"problem": str(error)}
    return {
        "padding": found.padding_ratio,
        "slots": found.slots,
        "kept": found.kept_events,
        "lost": found.events_lost,
        "truncated": found.sequences_truncated,
        "dropped": found.sequences_dropped,
        "batches": found.batches,
        "ghosts": found.ghost_rows,
    }


if __name__ == "__main__":
    FILE.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases()) + "\n]\n")
