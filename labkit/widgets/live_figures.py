"""LiveFigures: the two plotly figures of the panel, each updated in one message."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from labkit.experiments.scores import Score
from labkit.lengths.histogram import LengthHistogram
from labkit.views import palette
from labkit.views.histogram_figure import axis, bars, edge_marks, histogram_figure
from labkit.views.ranking_figure import ranking_data, ranking_figure


class LiveFigures:
    """The histogram with its edges, and the ranking of the strategies.

    Attributes:
        histogram: figure widget of the lengths.
        ranking: figure widget of the strategies.
    """

    def __init__(self, lengths: LengthHistogram) -> None:
        """Make both figures; ``draw`` fills them."""
        self.histogram = go.FigureWidget(histogram_figure(lengths, ()))
        self.ranking = go.FigureWidget(ranking_figure(()))
        self._drawn = lengths
        for figure in (self.histogram, self.ranking):
            figure._config = {**(figure._config or {}), **palette.PLOT_CONFIG, "responsive": True}

    def draw(
        self, lengths: LengthHistogram, edges: Sequence[int], max_length: int | None, scores: Sequence[Score]
    ) -> None:
        """Bring both figures up to date: one ``batch_update`` each."""
        with self.histogram.batch_update():
            if lengths is not self._drawn:
                self._draw_bars(lengths)
            self.histogram.layout.xaxis.update(axis(lengths, edges))
            self.histogram.update_layout(edge_marks(edges, max_length), overwrite=True)
        data = ranking_data(scores)
        with self.ranking.batch_update():
            useful, padding, text = self.ranking.data
            useful.y, useful.x = data["y"], data["useful"]
            padding.y, padding.x = data["y"], data["padding"]
            text.y, text.x, text.text = data["y"], [1.0] * len(data["y"]), data["text"]

    def _draw_bars(self, lengths: LengthHistogram) -> None:
        b = bars(lengths)
        sequences, events = self.histogram.data
        sequences.x, sequences.y, sequences.width, sequences.hovertext = b.centers, b.sequences, b.widths, b.hover
        events.x, events.y = b.centers, b.events
        self._drawn = lengths
