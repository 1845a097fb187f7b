"""Packs of one capacity: TRL's best-fit decreasing against labkit's."""

from __future__ import annotations

from labkit.batching.pack_figures import _packed
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from tests.benchmarks.peers import with_trl
from tests.benchmarks.peers.attempt import Missing, attempt, reasons
from tests.benchmarks.peers.data import DRAWN, LAWS, REAL, DataSet, data_set
from tests.benchmarks.peers.rounds import in_rounds
from tests.benchmarks.peers.tables import NOTHING, Row, Table
from tests.benchmarks.peers.verdicts import no_more_packs
from tests.benchmarks.table import quantity
from tests.benchmarks.timing import Samples

#: labkit remembers the packs of lengths that it has seen, for the next epoch; here every time is the first.
forget = _packed.cache_clear

#: Of the longest sequence.
CAPACITIES = (1, 2)
COLUMNS = (
    "lengths",
    "sequences",
    "capacity",
    "events / capacity",
    "TRL, by thousands",
    "TRL bfd",
    "labkit packed",
    "TRL, s",
    "labkit plan, s",
    "labkit what_if, s",
)
NOTES = (
    "capacity: the longest sequence, and twice that; events / capacity, rounded up: no packing can have fewer packs",
    "TRL bfd: all sequences at once; by thousands: pack_dataset left to its default batches",
    "labkit plan: from the lengths to the sequences of each pack; what_if: from the histogram to their number",
    "bar: no more packs than TRL on the same lengths at once",
    LAWS,
)


def run(quick: bool) -> Table:
    missing: dict[str, object] = {}
    sets = (data_set(key, quick) for key in REAL + DRAWN)
    rows = [_row(data, data.histogram.max * many, 1 if quick else 3, missing) for data in sets for many in CAPACITIES]
    return Table("Packing", COLUMNS, tuple(rows), (*NOTES, *reasons(missing)))


def _row(data: DataSet, capacity: int, repeats: int, missing: dict[str, object]) -> Row:
    policy = BatchPolicy("packed", capacity=capacity)
    own = what_if(data.histogram, policy).packs
    planned = plan_epoch(data.lengths, policy).pack_offsets.size - 1
    if planned != own:
        raise AssertionError(f"what_if says {own} packs, the plan has {planned}")
    calls = {
        "what_if": lambda: (forget(), what_if(data.histogram, policy)),
        "plan": lambda: (forget(), plan_epoch(data.lengths, policy)),
    }
    trl = attempt(lambda: _trl(data, capacity))
    if isinstance(trl, Missing):
        missing["TRL"] = trl
    else:
        calls["trl"] = trl[0]
    packs, thousands = (None, None) if isinstance(trl, Missing) else trl[1:]
    return _as_row(data, capacity, own, packs, thousands, in_rounds(calls, repeats))


def _trl(data: DataSet, capacity: int):
    """What to time, and its packs: at once, and with the default batches."""
    table = with_trl.table(data.lengths)
    packs = with_trl.packs(table, capacity)
    return lambda: with_trl.packs(table, capacity), packs, with_trl.packs_of_default_batches(data.lengths, capacity)


def _as_row(
    data: DataSet, capacity: int, own: int, packs: int | None, thousands: int | None, seconds: dict[str, Samples]
) -> Row:
    least = -(-data.histogram.events // capacity)
    times = {name: seconds[name].median if name in seconds else None for name in ("trl", "plan", "what_if")}
    record = {
        "lengths": data.key,
        "sequences": data.histogram.sequences,
        "capacity": capacity,
        "events_over_capacity": least,
        "trl_packs_by_thousands": thousands,
        "trl_packs": packs,
        "labkit_packs": own,
        **{f"{name}_median_s": value for name, value in times.items()},
        **{f"{name}_samples_s": list(found.values) for name, found in seconds.items()},
    }
    numbers = (data.histogram.sequences, capacity, least, thousands, packs, own)
    cells = (
        data.key,
        *(NOTHING if number is None else f"{number:,}" for number in numbers),
        *(NOTHING if value is None else quantity(value, "s") for value in times.values()),
    )
    return Row(cells, record, no_more_packs(own, packs))
