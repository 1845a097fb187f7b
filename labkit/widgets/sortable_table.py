"""SortableTable: an HTML table made by Python; a click on a head sorts its rows in the browser."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets as T


class SortableTable(anywidget.AnyWidget):
    """Shows a table; the cells to sort by have ``data-value``, the rows ``data-strategy``.

    Attributes:
        value: the table as HTML.
    """

    _esm = Path(__file__).with_name("sortable_table.js").read_text(encoding="utf-8")

    value = T.Unicode().tag(sync=True)
