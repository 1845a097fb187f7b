"""Colours of all pictures: Okabe-Ito, told apart by colour-blind eyes, each with a second encoding where it is used.

Source: M. Okabe, K. Ito, Color Universal Design, 2008.
"""

from __future__ import annotations

from typing import Any

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
GREY = "#8A8A8A"  # readable on white and on black
BAND = "rgba(127, 127, 127, 0.10)"
LINE = "rgba(127, 127, 127, 0.35)"


def base_layout(height: int, **more: Any) -> dict[str, Any]:
    """Layout shared by all figures: transparent, so that the light and the dark theme show through."""
    return {
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": GREY, "size": 12},
        "margin": {"l": 50, "r": 16, "t": 40, "b": 46},
        "showlegend": True,
        "legend": {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0, "xanchor": "left"},
        "autosize": True,
        "hoverlabel": {"namelength": -1},
        **more,
    }


#: Configuration of every figure on a screen: no upload button, no logo. Not "responsive": JupyterLab fits figures to
#: their cell itself, and plotly would shrink those that are scrolled out of sight to nothing.
PLOT_CONFIG = {"showSendToCloud": False, "displaylogo": False, "displayModeBar": False}
