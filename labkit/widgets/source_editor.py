"""SourceEditor: the sources of a kernel as text to change, with bars and marks beside the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets as T

from labkit.gpu.host.reports import LineCounts
from labkit.gpu.verify.proof import Finding
from labkit.views.kernel_lines import figures_as_json, line_figures, marks_as_json
from labkit.views.palette import CSS
from labkit.widgets.modules import joined_modules

_FOLDER = Path(__file__).parent


class SourceEditor(anywidget.AnyWidget):
    """A plain editor for a few files: no bundler, no network; Tab indents, Escape leaves, Ctrl+Enter asks for a check.

    Args:
        sources: file to text, as shipped; the first is shown.
        asked: called (without arguments) when a check is asked for by the keyboard.

    Attributes:
        texts: file to text as it is now.
        shipped: file to text as shipped.
        marks: what is wrong, see ``marks_as_json``; ``checked`` has the texts of which it was said.
        figures: requests of lines, see ``LineFigures``; ``counted`` has their texts.
        asked: how often a check was asked for.
    """

    _esm = joined_modules("cuda_words.mjs", "focus_kept.mjs", "notebook_keys.mjs", "source_editor.js")
    # as text: a path would be watched, and would keep every instance alive after it was closed
    _css = CSS + (_FOLDER / "source_editor.css").read_text(encoding="utf-8")

    texts = T.Dict(T.Unicode()).tag(sync=True)
    shipped = T.Dict(T.Unicode()).tag(sync=True)
    marks = T.List(T.Dict()).tag(sync=True)
    checked = T.Dict(T.Unicode()).tag(sync=True)
    figures = T.List(T.Dict()).tag(sync=True)
    counted = T.Dict(T.Unicode()).tag(sync=True)
    asked = T.Int(0).tag(sync=True)

    def __init__(self, sources: Mapping[str, str], asked: Callable[[], None] | None = None) -> None:
        """Show the sources as they are shipped."""
        super().__init__(texts=dict(sources), shipped=dict(sources))
        self._asked = asked
        self.observe(self._on_asked, "asked")

    def show_sources(self, shipped: Mapping[str, str], texts: Mapping[str, str] | None = None) -> None:
        """Other files: ``texts`` of them, or as shipped. What was known of the old ones goes."""
        with self.hold_sync():
            self.shipped, self.texts = dict(shipped), dict(texts or shipped)
            self.marks, self.checked, self.figures, self.counted = [], {}, [], {}

    def reset(self) -> None:
        """Back to the shipped texts."""
        self.texts = dict(self.shipped)

    def show_findings(self, findings: Iterable[Finding], sources: Mapping[str, str]) -> None:
        """Mark what is wrong in these texts."""
        with self.hold_sync():
            self.marks, self.checked = marks_as_json(findings), dict(sources)

    def show_counts(self, counts: Iterable[LineCounts], sources: Mapping[str, str]) -> None:
        """Bars beside the lines of these texts."""
        with self.hold_sync():
            self.figures, self.counted = figures_as_json(line_figures(counts)), dict(sources)

    def _on_asked(self, _: Any) -> None:
        if self._asked is not None:
            self._asked()
