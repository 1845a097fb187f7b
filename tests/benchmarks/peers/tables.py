"""A table of the comparison: cells to read, records to keep, verdicts to obey; printed as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

NOTHING = "-"


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        cells: as they are printed, the verdict left out.
        record: the same as numbers, for JSON; what is missing is None.
        met: whether its bar is met; None where it has none.
    """

    cells: tuple[str, ...]
    record: dict[str, Any]
    met: bool | None = None

    @property
    def verdict(self) -> str:
        return "" if self.met is None else "ok" if self.met else "MISSED"


@dataclass(frozen=True)
class Table:
    """Rows under a head.

    Attributes:
        title: what is compared, and the bar.
        columns: heads of the cells.
        rows: at least one of them has a bar.
        notes: how it was measured, and what is missing.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def bars(self) -> int:
        return sum(row.met is not None for row in self.rows)

    @property
    def missed(self) -> int:
        return sum(row.met is False for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        rows = [{**row.record, "met": row.met} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def markdown(table: Table) -> list[str]:
    """The table with columns in line, so that it reads as plain text too; then its notes."""
    heads = (*table.columns, "verdict")
    cells = [heads, *((*row.cells, row.verdict) for row in table.rows)]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(heads))]
    rule = [("-" * (w - 1) + ":") if 0 < i < len(heads) - 1 else "-" * w for i, w in enumerate(widths)]
    lines = [_line(line, widths) for line in (heads, rule, *cells[1:])]
    return [f"### {table.title}", "", *lines, "", *(f"- {note}" for note in table.notes)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    last = len(cells) - 1
    placed = (c.rjust(w) if 0 < i < last else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
    return f"| {' | '.join(placed)} |"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
