"""The columns of the comparison, in three groups that are never mixed: exact, modelled, measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from labkit.experiments.compare_rows import Compared
from labkit.provenance import Figure, Origin
from labkit.units import format_bytes, format_count, format_seconds, format_share

_PLANNED = "counted in the plan of one epoch"


class Group(StrEnum):
    """Where the numbers of a column come from."""

    EXACT = "exact"
    MODELLED = "modelled"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class CompareColumn:
    """One column.

    Attributes:
        group: of its numbers.
        name: key of the column.
        header: a word or two.
        tip: what it means.
        figure: the number of a strategy; None where there is no such figure.
        write: how it is written.
        best: which value is marked: ``min``, ``max``, or none.
        loss: a value above 0 stands out.
        bar: a small bar behind the number.
        word: for a column of words instead of numbers: what it says, and how that was found.
    """

    group: Group
    name: str
    header: str
    tip: str
    figure: Callable[[Compared], Figure | None]
    write: Callable[[float], str]
    best: Callable[[set[float]], float] | None = None
    loss: bool = False
    bar: bool = False
    word: Callable[[Compared], tuple[str, str] | None] | None = None


def _exact(name: str) -> Callable[[Compared], Figure | None]:
    def figure(row: Compared) -> Figure | None:
        value = None if row.audit is None else getattr(row.audit, name)
        return None if value is None else Figure(value, "1", Origin.EXACT, _PLANNED)

    return figure


def _modelled(name: str) -> Callable[[Compared], Figure | None]:
    return lambda row: None if row.modelled is None else row.modelled.figures[name]


def _measured(name: str) -> Callable[[Compared], Figure | None]:
    return lambda row: None if row.record is None else row.record.figures[name]


COLUMNS = (
    CompareColumn(
        Group.EXACT,
        "padding_ratio",
        "padding",
        "share of all slots that hold no event",
        _exact("padding_ratio"),
        format_share,
        min,
        bar=True,
    ),
    CompareColumn(
        Group.EXACT, "slots", "slots", "cells of all batches of an epoch", _exact("slots"), format_count, min
    ),
    CompareColumn(Group.EXACT, "batches", "batches", "steps of an epoch", _exact("batches"), format_count),
    CompareColumn(
        Group.EXACT,
        "truncated_share",
        "users cut",
        "sequences that lose a part or all of their events, as a share of all",
        _exact("truncated_share"),
        format_share,
        loss=True,
    ),
    CompareColumn(
        Group.EXACT,
        "lost_share",
        "events lost",
        "events that never reach the model, as a share of all",
        _exact("lost_share"),
        format_share,
        loss=True,
    ),
    CompareColumn(Group.MODELLED, "time_s", "epoch", "time of an epoch", _modelled("time_s"), format_seconds, min),
    CompareColumn(
        Group.MODELLED,
        "utilization",
        "busy",
        "share of the time in which a kernel runs (time-active)",
        _modelled("utilization"),
        format_share,
    ),
    CompareColumn(
        Group.MODELLED,
        "bound",
        "bound",
        "what rules the largest part of the time: arithmetic, bytes, or starting kernels",
        lambda row: None,
        str,
        word=lambda row: (
            None
            if row.modelled is None or row.modelled.bound is None
            else (str(row.modelled.bound), row.modelled.bound_reason)
        ),
    ),
    CompareColumn(
        Group.MODELLED,
        "peak_bytes",
        "peak",
        "most bytes of tensors in a step",
        _modelled("peak_bytes"),
        format_bytes,
        min,
    ),
    CompareColumn(
        Group.MODELLED,
        "launches",
        "launches",
        "host-side launches of an epoch",
        _modelled("launches"),
        format_count,
        min,
    ),
    CompareColumn(Group.MEASURED, "epoch_s", "epoch", "time of an epoch", _measured("epoch_s"), format_seconds, min),
    CompareColumn(
        Group.MEASURED,
        "events_per_s",
        "events/s",
        "real events, never slots",
        _measured("events_per_s"),
        format_count,
        max,
    ),
    CompareColumn(
        Group.MEASURED,
        "peak_bytes",
        "peak",
        "most bytes of tensors in a step",
        _measured("peak_bytes"),
        format_bytes,
        min,
    ),
    CompareColumn(
        Group.MEASURED,
        "utilization",
        "util",
        "utilization of the device; of a CPU the share of its cores",
        _measured("utilization"),
        format_share,
    ),
    CompareColumn(
        Group.MEASURED,
        "loader_wait_share",
        "wait",
        "share of the time in which the loop waits for its batch",
        _measured("loader_wait_share"),
        format_share,
    ),
)


def value_of(column: CompareColumn, row: Compared) -> float | None:
    """The number of a strategy in a column."""
    figure = column.figure(row)
    return None if figure is None else figure.value


def can_run(row: Compared) -> bool:
    """It was modelled or measured; of others only the plan is known."""
    return row.model_refusal is None or row.measure_refusal is None


def best_of(column: CompareColumn, rows: tuple[Compared, ...]) -> float | None:
    """The value that is marked; None where none is, or where all are the same. What cannot run is no best."""
    values = {value for row in rows if can_run(row) and (value := value_of(column, row)) is not None}
    return column.best(values) if column.best is not None and len(values) > 1 else None


def refusal_of(group: Group, row: Compared) -> str | None:
    """Why a strategy has no number in a group; None where it has."""
    match group:
        case Group.EXACT:
            return row.error if row.audit is None else None
        case Group.MODELLED:
            return row.model_refusal
        case Group.MEASURED:
            return row.measure_refusal
