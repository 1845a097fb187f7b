"""Closing a panel with everything in it: a widget that is only closed itself leaves its children in the kernel."""

from __future__ import annotations

import ipywidgets as W


def parts_of(widget: W.Widget) -> list[W.Widget]:
    """A widget and everything that belongs to it: children, layouts, styles."""
    found = [widget]
    for name in ("children", "layout", "style"):
        value = getattr(widget, name, None)
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, W.Widget):
                found += parts_of(part)
    return found
