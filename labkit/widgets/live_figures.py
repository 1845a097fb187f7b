"""LiveFigures: the two plotly figures of the panel, each updated in one message."""

from __future__ import annotations

import plotly.graph_objects as go

from labkit.batching.edges import Edges
from labkit.batching.strategies import Strategy
from labkit.experiments.scores import Scoreboard
from labkit.views import palette
from labkit.views.curve_figure import curve_data, curve_figure
from labkit.views.pareto_figure import pareto_data, pareto_figure, pareto_labels


class LiveFigures:
    """What further edges save, and which strategies are worth a look.

    Attributes:
        curve: figure widget of the optimum for every number of edges.
        pareto: figure widget of the strategies.
    """

    def __init__(self) -> None:
        """Make both figures; ``draw`` fills them."""
        self.curve = go.FigureWidget(curve_figure(curve_data((), 0, 0, None)))
        self.pareto = go.FigureWidget(pareto_figure(pareto_data(())))
        for figure in (self.curve, self.pareto):
            figure._config = {**(figure._config or {}), **palette.PLOT_CONFIG, "responsive": True}

    def draw(self, board: Scoreboard, optimum: Edges | None) -> None:
        """Bring both figures up to date: one ``batch_update`` each."""
        rows = board[Strategy.BUCKET_ROWS].what_if
        events = rows.kept_events if rows is not None else 0
        curve = optimum.curve if optimum is not None and optimum.curve is not None and rows is not None else ()
        refused = board[Strategy.BUCKET_ROWS].error or ""
        data = curve_data(curve, events, len(board.groups), rows.slots if rows is not None else None, refused)
        with self.curve.batch_update():
            best, bend, here = self.curve.data
            best.x, best.y = data["x"], data["y"]
            bend.x, bend.y = data["elbow_x"], data["elbow_y"]
            here.x, here.y = data["here_x"], data["here_y"]
            self.curve.layout.annotations[0].text = data["said"]
            self.curve.layout.xaxis.visible = self.curve.layout.yaxis.visible = not data["said"]
        points = pareto_data(board.scores)
        with self.pareto.batch_update():
            marks = self.pareto.data[0]
            marks.x, marks.y = points["x"], points["y"]
            marks.hovertext = points["hover"]
            marks.marker.size, marks.marker.symbol = points["size"], points["symbol"]
            axis = self.pareto.layout.xaxis
            axis.title.text, axis.range, axis.tickvals = points["title"], points["range"], points["ticks"]
            self.pareto.layout.annotations = pareto_labels(points)
