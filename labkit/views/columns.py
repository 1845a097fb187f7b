"""The columns of the strategies table: which figure, how it is written, and which way is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labkit.batching.what_if import WhatIf
from labkit.units import format_count, format_share


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        header: a few words.
        tip: what it means, shown when hovered.
        figure: the field of ``WhatIf`` whose origin it carries.
        value: the number that is compared and written.
        text: how it is written.
        ranked: the smallest value of the column is marked.
        bar: the cell is filled behind the number, in proportion.
        loss: anything above zero is something lost, and stands out.
    """

    header: str
    tip: str
    figure: str
    value: Callable[[WhatIf], float]
    text: Callable[[float], str]
    ranked: bool = True
    bar: bool = False
    loss: bool = False


COLUMNS = (
    Column(
        "padding",
        "share of all slots that hold no event",
        "padding_ratio",
        lambda w: w.padding_ratio,
        format_share,
        bar=True,
    ),
    Column("slots", "cells of all rectangles of an epoch", "slots", lambda w: w.slots, format_count),
    Column("batches", "batches of an epoch", "batches", lambda w: w.batches, format_count),
    Column("shapes", "distinct (rows, width) shapes of the batches", "shapes", lambda w: w.shapes, format_count),
    Column(
        "largest batch",
        "slots of the largest batch: what peak memory follows",
        "largest_batch_slots",
        lambda w: w.largest_batch_slots,
        format_count,
    ),
    Column(
        "ghost rows",
        "empty rows added so that shapes stay static",
        "ghost_rows",
        lambda w: w.ghost_rows,
        format_count,
        ranked=False,
    ),
    Column(
        "users cut",
        "sequences that lose a part or all of their events, as a share of all",
        "sequences_truncated",
        lambda w: w.truncated_share,
        format_share,
        ranked=False,
        loss=True,
    ),
    Column(
        "events lost",
        "events that never reach the model, as a share of all",
        "events_lost",
        lambda w: w.lost_share,
        format_share,
        ranked=False,
        loss=True,
    ),
)
