"""Padding with K edges: the formulas people use against the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labkit.batching.edges import optimal_edges
from tests.benchmarks.peers import fairness, with_lhotse, with_pandas, with_speechbrain
from tests.benchmarks.peers.attempt import Missing, attempt, reasons
from tests.benchmarks.peers.data import DRAWN, LAWS, REAL, DataSet, data_set
from tests.benchmarks.peers.tables import NOTHING, Row, Table, percent
from tests.benchmarks.peers.verdicts import never_above

Whole = Callable[[Sequence[float]], list[int]]

#: Name, formula, and how its boundaries become upper-inclusive whole edges.
FORMULAS: tuple[tuple[str, Callable[..., list[float]], Whole], ...] = (
    ("pandas.qcut", with_pandas.edges, fairness.up_to),
    ("Lhotse", with_lhotse.edges, fairness.below),
    ("SpeechBrain", with_speechbrain.edges, fairness.up_to),
)
BUCKETS = (8, 16)

NOTES = (
    "every sequence is padded to the longest of its bucket, nothing is cut; the longest of all is the last edge",
    "in parentheses: edges that are left where a formula makes equal ones or empty buckets",
    "bar: with as many edges as a peer has left, labkit never pads more (slots are compared as whole numbers)",
    LAWS,
)


def run(quick: bool) -> Table:
    missing: dict[str, object] = {}
    rows = [
        _row(data, buckets, missing) for data in (data_set(key, quick) for key in REAL + DRAWN) for buckets in BUCKETS
    ]
    columns = ("lengths", "K", *(name for name, _, _ in FORMULAS), "labkit optimal_edges")
    title = "Padding with K bucket edges (bar: never above any of them)"
    return Table(title, columns, tuple(rows), (*NOTES, *reasons(missing)))


def _row(data: DataSet, buckets: int, missing: dict[str, object]) -> Row:
    best = optimal_edges(data.histogram, buckets)
    own = fairness.padded_slots(best.edges, data.histogram)
    cells, record, counted = [], {"lengths": data.key, "buckets": buckets}, {}
    for name, formula, whole in FORMULAS:
        edges = attempt(lambda formula=formula, whole=whole: _edges(data, buckets, formula, whole))
        if isinstance(edges, Missing):
            missing[name] = edges
            cells.append(NOTHING)
            record[name] = None
            continue
        slots = fairness.padded_slots(edges, data.histogram)
        counted[name] = (len(edges), slots)
        cells.append(_cell(1 - data.histogram.events / slots, len(edges), buckets))
        record[name] = {"padding_ratio": 1 - data.histogram.events / slots, "slots": slots, "edges": edges}
    record["labkit"] = {"padding_ratio": 1 - data.histogram.events / own, "slots": own, "edges": best.edges}
    cells.append(_cell(1 - data.histogram.events / own, len(best.edges), buckets))
    met = own == best.curve[-1] and never_above(best.curve, counted)
    return Row((data.key, str(buckets), *cells), record, met)


def _edges(data: DataSet, buckets: int, formula: Callable[..., list[float]], whole: Whole) -> tuple[int, ...]:
    found = whole(formula(data.lengths, buckets))
    return fairness.tight(fairness.covering(found, buckets, data.histogram.max), data.histogram)


def _cell(padding: float, edges: int, asked: int) -> str:
    return percent(padding) + (f" ({edges})" if edges < asked else "")
