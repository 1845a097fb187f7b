"""ExportBox: which strategy goes into the JSON, where to, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ipywidgets as W

from labkit.batching.strategies import Strategy
from labkit.widgets.live_text import LiveText
from labkit.widgets.log_int import LABEL


class ExportBox(W.VBox):
    """A strategy menu, a path, the Export button and one line of answer.

    Args:
        strategy: chosen at first.
        path: of the JSON file.
        export: called (without arguments) when the button is pressed; read ``strategy`` and ``path`` then.
    """

    def __init__(self, strategy: Strategy, path: str | Path, export: Callable[[], None]) -> None:
        """Lay out the row and the answer below it."""
        wide = {"width": "auto"}
        options = [(str(s), s) for s in Strategy]
        self._strategy = W.Dropdown(options=options, value=strategy, description="strategy", style=LABEL, layout=wide)
        self._path = W.Text(
            str(path), description="file", style=LABEL, layout={"flex": "1 1 0", "width": "auto", "min_width": "0"}
        )
        self.button = W.Button(
            description="Export", icon="download", button_style="primary", layout={"flex": "0 0 92px", "width": "92px"}
        )
        self.answer = LiveText(layout={"padding": "0 0 0 100px"})
        for name in ("labkit-answer", "labkit-good"):
            self.answer.add_class(name)
        super().__init__([self._strategy, W.HBox([self._path, self.button]), self.answer])
        self.button.on_click(lambda _: export())

    @property
    def strategy(self) -> Strategy:
        """The strategy to export."""
        return Strategy(self._strategy.value)

    @property
    def path(self) -> str:
        """Where to."""
        return str(self._path.value).strip()

    def say(self, text: str, *, error: bool = False) -> None:
        """Show one line of answer."""
        self.answer.say(text, error=error)
