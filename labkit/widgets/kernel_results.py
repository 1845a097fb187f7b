"""KernelResults: what was found about a kernel, below the editor: tables and the picture of the regimes."""

from __future__ import annotations

import html

import ipywidgets as W
import plotly.graph_objects as go

from labkit.experiments.kernel_counts import KernelCounts
from labkit.experiments.kernel_time import KernelTime
from labkit.experiments.regime_shares import RegimeShare
from labkit.gpu.verify.proof import Proof
from labkit.lengths.histogram import LengthHistogram
from labkit.views import palette
from labkit.views.kernel_tables import counts_table, resources_table, time_table
from labkit.views.regime_figure import regime_figure
from labkit.widgets.fit_width import FitWidth
from labkit.widgets.panel_layout import parts_of


class KernelResults(W.VBox):
    """Regimes, counts, registers and time, each under a heading; a part that was not looked at says what would.

    Attributes:
        counts, resources, time: tables as HTML.
        thresholds: of the regimes that are drawn.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.counts, self.resources, self.time = W.HTML(), W.HTML(), W.HTML()
        self.thresholds: tuple[int, ...] = ()
        self._figure = W.VBox(layout={"width": "100%", "min_width": "0"})
        super().__init__(
            [
                FitWidth(),
                _headed("Who works on which lengths", self._figure),
                _headed("Requests to memory, by regime", self.counts),
                _headed("Registers and occupancy", self.resources),
                _headed("Time", self.time),
            ],
            layout={"width": "100%"},
        )
        self.forget()

    def forget(self) -> None:
        """Another kernel: what was known is of the old one."""
        self.counts.value = _hint("<b>Check</b> or <b>Counts</b> fills this.")
        self.resources.value = _hint("<b>Check</b> fills this.")

    def show_regimes(self, histogram: LengthHistogram, shares: tuple[RegimeShare, ...]) -> None:
        """Draw the thresholds over the lengths."""
        self.thresholds = tuple(share.most for share in shares if share.most is not None)
        figure = go.FigureWidget(regime_figure(histogram, shares))
        figure.layout.autosize = True
        figure._config = {**(figure._config or {}), **palette.PLOT_CONFIG, "responsive": True}
        old, self._figure.children = self._figure.children, (figure,)
        for widget in old:
            for part in parts_of(widget):
                part.close()

    def show_proof(self, proof: Proof) -> None:
        """The table of registers."""
        if proof.resources:
            self.resources.value = resources_table(proof.resources)._repr_html_()
        else:
            why = next((text for text in proof.not_proved if text.startswith("compiling")), "it does not compile")
            self.resources.value = _hint(html.escape(why))

    def show_counts(self, counts: KernelCounts) -> None:
        """The table by regime."""
        self.counts.value = counts_table(counts)._repr_html_()

    def show_time(self, time: KernelTime) -> None:
        """Time and floor."""
        self.time.value = time_table(time)._repr_html_()


def _headed(title: str, content: W.Widget) -> W.VBox:
    head = W.HTML(
        f'<b style="display:block;margin:12px 0 2px;border-bottom:1px solid rgba(127,127,127,.3)">{title}</b>'
    )
    return W.VBox([head, content], layout={"width": "100%"})


def _hint(text: str) -> str:
    """``text`` is HTML."""
    return f'<span style="color:var(--labkit-quiet, #666)">{text}</span>'
