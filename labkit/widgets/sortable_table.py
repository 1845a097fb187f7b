"""SortableTable: an HTML table made by Python; small changes travel small, a click on a head sorts its rows."""

from __future__ import annotations

import re
from pathlib import Path

import anywidget
import traitlets as T

_TAGS = re.compile(r"(?=<)")
#: A patch above this share of the table is no saving: the table is sent whole.
_MOST_PATCHED = 0.4


class SortableTable(anywidget.AnyWidget):
    """Shows a table; the cells to sort by have ``data-value``, the rows ``data-strategy``.

    A table in which only some numbers changed is sent as the tags that differ from ``base``.

    Attributes:
        base: a whole table as HTML.
        patch: number of a tag -> its text in the table that is shown, where it is not that of ``base``.
    """

    _esm = Path(__file__).with_name("sortable_table.js").read_text(encoding="utf-8")

    base = T.Unicode().tag(sync=True)
    patch = T.Dict().tag(sync=True)

    @property
    def value(self) -> str:
        """The table that is shown, as HTML."""
        parts = _TAGS.split(self.base)
        for number, text in self.patch.items():
            parts[int(number)] = text
        return "".join(parts)

    @value.setter
    def value(self, table: str) -> None:
        before, after = _TAGS.split(self.base), _TAGS.split(table)
        patch = {str(i): new for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new}
        is_small = len(before) == len(after) and sum(map(len, patch.values())) <= _MOST_PATCHED * len(table)
        with self.hold_sync():
            self.patch = patch if is_small else {}
            if not is_small:
                self.base = table
