"""Section: a heading that shows and hides what is below it; a plain button, so that keys and screen readers have it."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as W
import traitlets as T


class Section(W.VBox):
    """A titled part of a panel.

    Args:
        title: of the heading.
        children: what is below it.
        is_open: whether it is shown at first.

    Attributes:
        is_open: whether it is shown.
    """

    is_open = T.Bool(True)

    def __init__(self, title: str, children: Sequence[W.Widget], *, is_open: bool = True) -> None:
        """Lay out heading and body."""
        self.heading = W.Button(description=title, layout={"width": "100%", "height": "26px", "margin": "4px 0 0"})
        self.heading.add_class("labkit-heading")
        self.body = W.VBox(list(children))
        super().__init__([self.heading, self.body])
        self.heading.on_click(lambda _: self.set_trait("is_open", not self.is_open))
        self.observe(lambda _: self._show(), "is_open")
        self.is_open = is_open
        self._show()

    def _show(self) -> None:
        self.body.layout.display = "" if self.is_open else "none"
        self.heading.icon = "caret-down" if self.is_open else "caret-right"
        self.heading.tooltip = "hide" if self.is_open else "show"
