"""NotebookFigure: a plotly figure as JupyterLab's own plotly renderer shows it, with nothing fetched from elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from labkit.views.palette import PLOT_CONFIG


@dataclass(frozen=True, slots=True)
class NotebookFigure:
    """A figure with a name; displays itself as JSON for the renderer, without a copy of plotly in the notebook.

    Attributes:
        figure: the figure.
        name: what it shows, in a few words: all that a text terminal sees.
    """

    figure: go.Figure
    name: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        content = json.loads(self.figure.to_json())
        return {
            "application/vnd.plotly.v1+json": {**content, "config": PLOT_CONFIG},
            "text/plain": f"[figure: {self.name}]",
        }

    def html(self, *, with_library: bool) -> str:
        """A ``div`` for a page; the first of a page brings the library along, so that the page works offline."""
        return str(
            self.figure.to_html(
                full_html=False, include_plotlyjs=with_library, config={**PLOT_CONFIG, "responsive": True}
            )
        )
