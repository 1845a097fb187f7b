"""SortableTable: an HTML table made by Python; small changes travel small, a click on a head sorts its rows."""

from __future__ import annotations

import re

import anywidget
import traitlets as T

from labkit.widgets.modules import joined_modules

#: Tags, quoted values and the parts of long ones: what changes from one table to the next is little more than numbers.
#: ``sortable_table.js`` splits with the same expression.
_SEPARATOR = re.compile(r'([<";])')
#: A patch above this share of the table is no saving: the table is sent whole.
_MOST_PATCHED = 0.4
#: What a part costs beside its text: its number, quotes and a comma.
_PART_COST = 12


class SortableTable(anywidget.AnyWidget):
    """Shows a table; the cells to sort by have ``data-value``, the rows ``data-strategy``.

    A table in which only some numbers changed is sent as the parts that differ from ``base``.

    Attributes:
        base: a whole table as HTML.
        patch: number of a part -> its text in the table that is shown, where it is not that of ``base``.
    """

    _esm = joined_modules("focus_kept.mjs", "notebook_keys.mjs", "sortable_table.js")

    base = T.Unicode().tag(sync=True)
    patch = T.Dict().tag(sync=True)

    @property
    def value(self) -> str:
        """The table that is shown, as HTML."""
        parts = _SEPARATOR.split(self.base)
        for number, text in self.patch.items():
            parts[int(number)] = text
        return "".join(parts)

    @value.setter
    def value(self, table: str) -> None:
        before, after = _SEPARATOR.split(self.base), _SEPARATOR.split(table)
        patch = {str(i): new for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new}
        cost = sum(map(len, patch.values())) + _PART_COST * len(patch)
        is_small = len(before) == len(after) and cost <= _MOST_PATCHED * len(table)
        with self.hold_sync():
            self.patch = patch if is_small else {}
            if not is_small:
                self.base = table
