"""LiveText: one line of answer that screen readers say when it changes, an error at once."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets as T

from labkit.views.palette import CSS

_STYLE = """
.labkit-live { line-height: 1.35; font-size: 12.5px; color: var(--labkit-quiet); overflow-wrap: anywhere; }
.labkit-good .labkit-live { color: var(--labkit-good); }
.labkit-live .wrong { color: var(--labkit-bad); }
"""


class LiveText(anywidget.AnyWidget):
    """Plain text, no HTML; with the class ``labkit-good`` what is no error is green.

    Attributes:
        text: what is said; "" for nothing.
        is_error: it is an error: said at once (``role=alert``); anything else when there is a pause (``role=status``).
    """

    # as text: a path would be watched, and would keep every instance alive after it was closed
    _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    _css = CSS + _STYLE

    text = T.Unicode("").tag(sync=True)
    is_error = T.Bool(False).tag(sync=True)

    def say(self, text: str | None, *, error: bool = False) -> None:
        """Show one line, in one message; None or "" takes the last one away."""
        with self.hold_sync():
            self.text, self.is_error = text or "", error and bool(text)
