"""The columns that a measurement adds to the strategies table, never mixed with what is modelled."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from labkit.batching.strategies import Strategy
from labkit.bench.record import Record
from labkit.units import format_bytes, format_count, format_seconds
from labkit.views.badges import BADGES


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """One column.

    Attributes:
        header: a few words.
        tip: what it means, shown when hovered.
        figure: of the record.
        write: how its number is written.
        most_is_best: the largest value of the column is marked, otherwise the smallest.
    """

    header: str
    tip: str
    figure: str
    write: Callable[[float], str]
    most_is_best: bool = False


@dataclass(frozen=True)
class Measured:
    """Records to be shown beside the scores.

    Attributes:
        title: what ran on what.
        records: by strategy.
        stale: strategies whose record is of earlier settings than those that are shown.
        on_cpu: no kernels are launched there: what is counted are ops.
    """

    title: str = ""
    records: Mapping[Strategy, Record] = field(default_factory=dict)
    stale: frozenset[Strategy] = frozenset()
    on_cpu: bool = True

    @property
    def columns(self) -> tuple[MeasuredColumn, ...]:
        """None without a record."""
        if not self.records:
            return ()
        counted = (
            ("ops", "ops dispatched in an epoch") if self.on_cpu else ("launches", "host-side launches of an epoch")
        )
        return (
            MeasuredColumn("events/s", "real events a second", "events_per_s", format_count, most_is_best=True),
            MeasuredColumn("epoch", "an epoch", "epoch_s", format_seconds),
            MeasuredColumn("peak", "most bytes in use in a step", "peak_bytes", format_bytes),
            MeasuredColumn(*counted, "launches", format_count),
        )

    def best(self) -> dict[str, float]:
        """Best value of each column among the records of the settings that are shown."""
        best = {}
        for column in self.columns:
            fresh = (r for key, r in self.records.items() if key not in self.stale)
            values = {v for r in fresh if (v := getattr(r, column.figure)) is not None}
            if len(values) > 1:
                best[column.figure] = max(values) if column.most_is_best else min(values)
        return best

    def cells(self, strategy: Strategy, best: Mapping[str, float]) -> list[str]:
        """The cells of a row in HTML; ``best`` as above."""
        record = self.records.get(strategy)
        return [self._cell(record, strategy in self.stale, column, best) for column in self.columns]

    def _cell(self, record: Record | None, stale: bool, column: MeasuredColumn, best: Mapping[str, float]) -> str:
        figure = None if record is None else record.figures[column.figure]
        name = f"measured_{column.figure}"
        if figure is None or figure.value is None or figure.origin is None:
            why = "not measured" if figure is None else figure.reason or ""
            return f'<td data-figure="{name}" class="none" title="{html.escape(why)}">–</td>'
        mark, legend = BADGES[figure.origin]
        why = html.escape("; ".join(x for x in ("for earlier settings" if stale else "", figure.reason or legend) if x))
        kind = "stale" if stale else "best" if best.get(column.figure) == figure.value else ""
        return (
            f'<td data-figure="{name}" data-value="{figure.value!r}" class="{kind}" title="{why}">'
            f'{column.write(figure.value)}<sup class="{figure.origin}">{mark}</sup></td>'
        )


#: Nothing was measured.
NOTHING = Measured()
