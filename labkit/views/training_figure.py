"""What the order of the data does to training: noise of the gradient, and the held-out loss on the way."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from labkit.experiments.training_effect import Order, OrderEffect
from labkit.views import palette

_STYLES = {
    Order.RANDOM: (palette.BLUE, "solid"),
    Order.BUCKETS: (palette.GREEN, "dash"),
    Order.GROUPED: (palette.ORANGE, "dashdot"),
    Order.SORTED: (palette.VERMILION, "dot"),
}


def noise_figure(effects: Sequence[OrderEffect], *, height: int = 240) -> go.Figure:
    """Bars: squared distance of a batch's gradient from that of all data, and beside it the padding it buys."""
    names = [str(e.order) for e in reversed(effects)]
    figure = go.Figure(
        go.Bar(
            y=names,
            x=[e.gradient_noise for e in reversed(effects)],
            orientation="h",
            marker={"color": [_STYLES[e.order][0] for e in reversed(effects)]},
            text=[f"  noise {e.gradient_noise:.2f} · padding {e.padding_ratio:.1%}" for e in reversed(effects)],
            textposition="outside",
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    figure.update_layout(**palette.base_layout(height, bargap=0.4))
    figure.update_layout(showlegend=False, margin={"l": 150, "r": 200, "t": 8})
    figure.update_xaxes(
        title={"text": "noise of the gradient at the start, measured: mean |g_batch - g|² / |g|²", "standoff": 4},
        gridcolor=palette.LINE,
        rangemode="tozero",
    )
    figure.update_yaxes(ticksuffix="  ")
    return figure


def loss_figure(effects: Sequence[OrderEffect], *, height: int = 320) -> go.Figure:
    """Held-out loss against the sequences seen, one line an order."""
    figure = go.Figure(
        [
            go.Scatter(
                x=e.sequences_seen,
                y=e.losses,
                name=str(e.order),
                mode="lines",
                line={"color": _STYLES[e.order][0], "dash": _STYLES[e.order][1], "width": 2},
            )
            for e in effects
        ]
    )
    figure.update_layout(**palette.base_layout(height))
    figure.update_layout(margin={"t": 12})
    figure.update_xaxes(title={"text": "sequences seen", "standoff": 4}, gridcolor=palette.LINE)
    figure.update_yaxes(title="held-out loss, measured", gridcolor=palette.LINE)
    return figure
