"""Prose: a few sentences and points, set as text in a notebook and as lines elsewhere."""

from __future__ import annotations

import html
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs, and below them points.

    Attributes:
        paragraphs: each on its own.
        points_title: said before the points.
        points: a list below.
    """

    paragraphs: tuple[str, ...]
    points_title: str = ""
    points: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        said = [f"<p>{html.escape(text)}</p>" for text in self.paragraphs]
        if self.points:
            items = "".join(f"<li>{html.escape(point)}</li>" for point in self.points)
            said.append(f"<p>{html.escape(self.points_title)}</p><ul>{items}</ul>")
        return f'<div class="labkit-prose" style="max-width:78em;line-height:1.5">{"".join(said)}</div>'

    def __repr__(self) -> str:
        title = [self.points_title] if self.points else []
        return "\n".join([*self.paragraphs, *title, *(f"- {point}" for point in self.points)])
