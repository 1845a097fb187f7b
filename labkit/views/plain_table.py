"""PlainTable: rows of short texts as an HTML table in a notebook, as aligned text elsewhere."""

from __future__ import annotations

import html
from dataclasses import dataclass

from labkit.views.table_style import STYLE


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A small table whose first column names the rows.

    Attributes:
        header: texts of the header.
        rows: texts of each row, as many as the header.
        note: a line below.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.header)
        body = "".join(
            f"<tr><th>{html.escape(row[0])}</th>"
            + "".join(f"<td>{html.escape(text)}</td>" for text in row[1:])
            + "</tr>"
            for row in self.rows
        )
        note = f'<p class="labkit-legend labkit-table">{html.escape(self.note)}</p>' if self.note else ""
        return (
            f'{STYLE}<div class="labkit-table-box"><table class="labkit-table"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>{note}</div>"
        )

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in lines
        ]
        return "\n".join([*text, *([self.note] if self.note else [])])
