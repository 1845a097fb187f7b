"""FitWidth: an invisible element that keeps plotly figures as wide as the panel they are in."""

from __future__ import annotations

from pathlib import Path

import anywidget


class FitWidth(anywidget.AnyWidget):
    """Put one into the column of the figures; it holds no state."""

    # the text and not the path: a path is watched and keeps every instance alive
    _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
