"""Seconds to plan an epoch of a million sequences."""

from __future__ import annotations

import gc

import numpy as np
from numpy.typing import NDArray

from labkit.lengths.generate import power_law
from tests.benchmarks.peers.attempt import Missing, attempt, reasons
from tests.benchmarks.peers.lineup import SAMPLERS
from tests.benchmarks.peers.rounds import in_rounds, times_faster
from tests.benchmarks.peers.samplers import Sampler
from tests.benchmarks.peers.tables import NOTHING, Row, Table
from tests.benchmarks.peers.verdicts import TIMES_FASTER, fast_enough
from tests.benchmarks.table import progress, quantity
from tests.benchmarks.timing import Samples

COLUMNS = ("sampler", "limit", "median", "spread", "n", "times labkit")
WARM_UP = 20_000
#: What takes less is timed in more rounds.
QUICK_S = 1


def run(quick: bool) -> Table:
    lengths = power_law(100_000 if quick else 1_000_000, alpha=1.6, max_length=4096, seed=1)
    missing: dict[str, object] = {
        s.name: found for s in SAMPLERS if isinstance(found := _warmed_up(s, lengths), Missing)
    }
    usable = [s for s in SAMPLERS if s.name not in missing]
    plans = {s.name: s.prepare(lengths).plan for s in usable}
    gc.freeze()  # a million cuts: not to be walked before every timing
    progress("planning: warm; in rounds ...")
    rounds = [in_rounds(plans, 2 if quick else 3)]
    quick_ones = {name: plans[name] for name, found in rounds[0].items() if found.median < QUICK_S}
    rounds.append(in_rounds(quick_ones, 5 if quick else 21))
    gc.unfreeze()
    notes = (
        f"{lengths.size:,} lengths, P(length) ~ length^-1.6, 1 .. 4096; edges are found off the clock for all",
        "a plan is done when every batch is there as a list or an array of indices",
        f"warm-up on the first {WARM_UP:,}; then in turns, garbage collection off; under {QUICK_S} s in more rounds",
        "times labkit: median over rounds, against the labkit sampler with the same kind of limit",
    )
    title = f"Planning an epoch (bar: the fastest peer takes {TIMES_FASTER} times as long)"
    return Table(title, COLUMNS, tuple(_rows(rounds)), (*notes, *reasons(missing)))


def _warmed_up(sampler: Sampler, lengths: NDArray[np.int32]) -> Missing | None:
    return attempt(lambda: sampler.prepare(lengths[:WARM_UP]).plan() and None)


def _rows(rounds: list[dict[str, Samples]]) -> list[Row]:
    """Each sampler from the last rounds that it was in, held against labkit in the same rounds."""
    owns = {s.budgeted: s.name for s in SAMPLERS if s.own}
    rows = []
    for sampler in SAMPLERS:
        seconds = next((found for found in reversed(rounds) if sampler.name in found), {})
        found = seconds.get(sampler.name)
        ratio = None if found is None or sampler.own else times_faster(seconds[owns[sampler.budgeted]], found)
        met = None if sampler.own or ratio is None else fast_enough([ratio])
        rows.append(_row(sampler, found, ratio, met))
    return rows


def _row(sampler: Sampler, found: Samples | None, ratio: float | None, met: bool | None) -> Row:
    record = {"sampler": sampler.name, "limit": sampler.limit, "times_labkit": ratio}
    if found is None:
        return Row((sampler.name, sampler.limit, *[NOTHING] * 4), record)
    record |= {
        "median_s": found.median,
        "spread_s": found.spread,
        "n": len(found.values),
        "samples_s": list(found.values),
    }
    cells = (
        quantity(found.median, "s"),
        NOTHING if found.spread is None else quantity(found.spread, "s"),
        str(len(found.values)),
        NOTHING if ratio is None else f"{ratio:.1f}x",
    )
    return Row((sampler.name, sampler.limit, *cells), record, met)
