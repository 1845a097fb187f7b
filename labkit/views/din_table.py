"""The DIN experiment: figures that others published, and beside them ours, each group with its own origin."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.experiments.din_experiment import UNSAID, DinExperiment, DinWay
from labkit.provenance import Origin
from labkit.units import format_bytes, format_count, format_share
from labkit.views.badges import BADGES
from labkit.views.plain_table import PlainTable

_ABSENT = "–"


def din_table(found: DinExperiment) -> PlainTable:
    """A row a way; what was published stands in columns of its own."""
    header = (
        "way",
        *("published time", "published util", "published memory"),
        *("padding", "batches", "events lost"),
        *("modelled time", "modelled busy", "bound", "modelled peak"),
        *("measured time", "measured peak"),
    )
    model, measured = found.relative_model(), found.relative_measured()
    rows = tuple(_row(*each) for each in zip(found.ways, model, measured, strict=True))
    device = next((w.here.record.device for w in found.ways if w.here.record is not None and w.here.record.ok), None)
    origins = {w.here.record.provenance.get("epoch_s") for w in found.ways if w.here.record is not None} - {None}
    how = next((str(origin) for origin in origins if origin), str(Origin.MEASURED))
    note = (
        "published: figures of others, whose source names no device; times are relative to the first way. "
        f"{BADGES[Origin.EXACT][0]} padding, batches, events lost: exact. "
        f"{BADGES[Origin.MODELLED][0]} modelled: {found.choice.title}. "
        + (f"{how}: {device}." if device else "Measured: nothing was.")
    )
    return PlainTable(header, rows, note)


def unsaid_list() -> str:
    """What the description leaves open, and what is done here, as lines."""
    return "The description does not say:\n" + "\n".join(f"- {line}" for line in UNSAID)


def _row(way: DinWay, model: float | None, measured: float | None) -> tuple[str, ...]:
    told, here = way.published, way.here
    published = (f"{told.relative_time:.2f}", format_share(told.utilization), format_bytes(told.memory_bytes))
    if here.audit is None:
        return (way.title, *published, str(here.error), *[""] * 8)
    exact = (
        format_share(here.audit.padding_ratio),
        format_count(here.audit.batches),
        format_share(here.audit.lost_share),
    )
    return (way.title, *published, *exact, *_modelled(way, model), *_measured(way, measured))


def _modelled(way: DinWay, relative: float | None) -> Sequence[str]:
    found = way.here.modelled
    if found is None or relative is None:
        return [_ABSENT] * 4
    busy, peak = found.figures["utilization"].value, found.figures["peak_bytes"].value
    return [
        f"~{relative:.2f}",
        _ABSENT if busy is None else f"~{format_share(busy)}",
        f"~{found.bound}",
        _ABSENT if peak is None else f"~{format_bytes(peak)}",
    ]


def _measured(way: DinWay, relative: float | None) -> Sequence[str]:
    record = way.here.record
    if record is None or relative is None:
        return [_ABSENT] * 2
    peak = record.peak_bytes
    return [f"{relative:.2f}", _ABSENT if peak is None else format_bytes(peak)]
