"""An epoch of batches from each sampler: what is padded, what goes over the budget, what is left out."""

from __future__ import annotations

from tests.benchmarks.peers.attempt import Missing, attempt, reasons
from tests.benchmarks.peers.data import LAWS, DataSet, data_set
from tests.benchmarks.peers.fairness import BatchFigures, judge
from tests.benchmarks.peers.lineup import SAMPLERS
from tests.benchmarks.peers.rounds import in_rounds
from tests.benchmarks.peers.samplers import BUCKETS, BUDGET, Prepared, Sampler
from tests.benchmarks.peers.tables import NOTHING, Row, Table, percent
from tests.benchmarks.peers.verdicts import keeps_its_word
from tests.benchmarks.table import quantity
from tests.benchmarks.timing import Samples

DATA = ("household-lines", "basket-items", "zipf", "capped")
COLUMNS = ("lengths", "sampler", "limit", "padding", "batches", "largest batch", "over budget", "seconds", "each once")
NOTES = (
    "all are judged alike: a batch is as wide as its longest sequence; over budget: by the largest batch",
    f"bucketing samplers have {BUCKETS} buckets, each with the edges of its own formula, found off the clock",
    "bar, for labkit: every sequence in exactly one batch, no batch over the budget",
    LAWS,
)


def run(quick: bool) -> Table:
    missing: dict[str, object] = {}
    rows = [row for key in DATA for row in _rows(data_set(key, quick), 1 if quick else 3, missing)]
    return Table("An epoch of batches", COLUMNS, tuple(rows), (*NOTES, *reasons(missing)))


def _rows(data: DataSet, repeats: int, missing: dict[str, object]) -> list[Row]:
    ready: dict[str, Prepared | Missing] = {s.name: attempt(lambda s=s: s.prepare(data.lengths)) for s in SAMPLERS}
    missing.update({name: found for name, found in ready.items() if isinstance(found, Missing)})
    usable = {name: found for name, found in ready.items() if isinstance(found, Prepared)}
    figures = {name: judge(found.indices(found.plan()), data.lengths) for name, found in usable.items()}  # warms up too
    seconds = in_rounds({name: found.plan for name, found in usable.items()}, repeats)
    return [_row(data, s, figures.get(s.name), seconds.get(s.name)) for s in SAMPLERS]


def _row(data: DataSet, sampler: Sampler, figures: BatchFigures | None, seconds: Samples | None) -> Row:
    record = {"lengths": data.key, "sampler": sampler.name, "limit": sampler.limit}
    if figures is None or seconds is None:
        return Row((data.key, sampler.name, sampler.limit, *[NOTHING] * 6), record)
    over = figures.over(BUDGET) if sampler.budgeted else None
    record |= {
        "padding_ratio": figures.padding_ratio,
        "batches": figures.batches,
        "largest_batch_slots": figures.largest,
        "over_budget_slots": over,
        "missing": figures.missing,
        "repeated": figures.repeated,
        "samples_s": list(seconds.values),
        "median_s": seconds.median,
    }
    once = "yes" if figures.covers else f"{figures.missing} missing, {figures.repeated} repeated"
    cells = (
        percent(figures.padding_ratio),
        f"{figures.batches:,}",
        f"{figures.largest:,}",
        NOTHING if over is None else f"{over:,}",
        quantity(seconds.median, "s"),
        once,
    )
    met = keeps_its_word(figures, BUDGET if sampler.budgeted else None) if sampler.own else None
    return Row((data.key, sampler.name, sampler.limit, *cells), record, met)
