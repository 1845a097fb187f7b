"""Colours of all pictures: Okabe-Ito, told apart by colour-blind eyes, each with a second encoding where it is used.

Source: M. Okabe, K. Ito, Color Universal Design, 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
#: Of text in pictures: 4.5 to 1 on white. None has that on JupyterLab's dark ground (#111) too: ``CSS`` lightens them.
#: It knows them by their values, which are therefore a little off the round ones: pictures of others are left alone.
GREY = "#757676"
TEXT_GREEN = "#01735A"
TEXT_VERMILION = "#AD4701"
BAND = "rgba(127, 127, 127, 0.10)"
LINE = "rgba(127, 127, 127, 0.35)"


#: Colours of text and of focus rings, on light and on dark ground: text 4.5 to 1, rings 3 to 1 at the least.
#: In CSS they are ``var(--labkit-good)`` and so on.
INKS: dict[str, tuple[str, str]] = {
    "good": ("#00735A", "#2FBF95"),
    "bad": ("#AD4700", "#FF8A4C"),
    "modelled": ("#8A5A00", ORANGE),
    "special": ("#A8497F", "#E08FBD"),
    "quiet": ("#666666", "#ABABAB"),
    "ring": (BLUE, "#56B4E9"),
}


def _css() -> str:
    def declared(value: Callable[[str, str], str]) -> str:
        return "".join(f" --labkit-{name}: {value(*inks)};" for name, inks in INKS.items())

    def in_pictures(color: str, name: str) -> str:
        r, g, b = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        return f'.js-plotly-plot text[style*="rgb({r}, {g}, {b})"] {{ fill: var(--labkit-{name}) !important; }}\n'

    return (
        f":root {{{declared(lambda light, dark: light)} }}\n"
        "@supports (color: light-dark(red, red)) {\n"
        f"  :root {{{declared(lambda light, dark: f'light-dark({light}, {dark})')} }}\n}}\n"
        f'body[data-jp-theme-light="false"] {{{declared(lambda light, dark: dark)} }}\n'
        + in_pictures(GREY, "quiet")
        + in_pictures(TEXT_GREEN, "good")
        + in_pictures(TEXT_VERMILION, "bad")
    )


#: What makes ``INKS`` known to a page: JupyterLab says its theme on the body, other pages have ``color-scheme``.
#: Texts in pictures, whose colours plotly writes as they are, follow.
CSS = _css()


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


#: Configuration of every figure on a screen: no upload button, no logo. "responsive" is added where nobody else fits
#: the figure to its place: in a page without JupyterLab, and in a panel, where ``FitWidth`` calls what it sets up.
#: Outputs of cells go without: JupyterLab fits them, and plotly would shrink those out of sight to nothing.
PLOT_CONFIG = {"showSendToCloud": False, "displaylogo": False, "displayModeBar": False}
