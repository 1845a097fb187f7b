"""Colours of text stand out from JupyterLab's grounds as WCAG 2 asks (1.4.3, 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import labkit
from labkit.views import palette

#: Behind what is shown: notebook, outputs, cells; those that are hovered over or are tabs are light only.
LIGHT, DARK = ("#FFFFFF", "#F5F5F5", "#EEEEEE"), ("#111111", "#212121")


def luminance(color: str) -> float:
    """Relative luminance of ``#RRGGBB``, as WCAG 2 defines it."""
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("name", palette.INKS)
def test_inks_of_text_and_rings_stand_out_in_both_themes(name: str) -> None:
    least = 3 if name == "ring" else 4.5
    for color, grounds in zip(palette.INKS[name], (LIGHT, DARK), strict=True):
        assert min(contrast(color, ground) for ground in grounds) >= least


def test_text_of_pictures_stands_out_on_white_and_is_given_another_colour_on_dark() -> None:
    assert contrast(palette.GREY, "#FFFFFF") >= 4.5
    for color, ink in ((palette.GREY, "quiet"), (palette.TEXT_GREEN, "good"), (palette.TEXT_VERMILION, "bad")):
        assert contrast(color, "#FFFFFF") >= 4.5
        assert color not in ("#767676", palette.GREEN, palette.VERMILION)  # which pictures of others have too
        r, g, b = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        assert f'text[style*="rgb({r}, {g}, {b})"] {{ fill: var(--labkit-{ink}) !important; }}' in palette.CSS


@pytest.mark.parametrize("color", [palette.BLUE, palette.GREEN, palette.VERMILION])
def test_lines_and_marks_stand_out_in_both_themes(color: str) -> None:
    assert min(contrast(color, ground) for ground in ("#FFFFFF", *DARK)) >= 3


def test_styles_take_coloured_text_from_the_palette() -> None:
    """A colour of the palette written out as that of a text has no theme."""
    folder = Path(labkit.__file__).parent
    found = [
        (path.name, color)
        for path in (*folder.glob("views/*.py"), *folder.glob("widgets/*.py"), *folder.glob("widgets/*.css"))
        for color in re.findall(r"[^-]\bcolor: ?(#[0-9A-Fa-f]{6})", path.read_text(encoding="utf-8"))
        if min(contrast(color, ground) for ground in ("#FFFFFF", "#111111")) < 4.5
    ]
    assert found == []
