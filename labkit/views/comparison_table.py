"""Two settings side by side for one strategy: A, B and the difference."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

from labkit.experiments.scores import Score
from labkit.provenance import Figure, Origin
from labkit.units import format_bytes, format_count, format_seconds, format_share
from labkit.views.badges import BADGES
from labkit.views.table_style import STYLE


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two.

    Attributes:
        name: a letter, or *now*.
        title: what its settings are, in words.
        score: of the strategy under these settings; None where nothing is kept.
    """

    name: str
    title: str
    score: Score | None


#: What is compared: header, figure, how it is written, and whether a model makes it.
_ROWS: tuple[tuple[str, str, Callable[[float], str], bool], ...] = (
    ("padding", "padding_ratio", format_share, False),
    ("slots", "slots", format_count, False),
    ("batches", "batches", format_count, False),
    ("events lost", "events_lost", format_count, False),
    ("time", "time_s", format_seconds, True),
    ("peak", "peak_bytes", format_bytes, True),
    ("launches", "launches", format_count, True),
)


def comparison_table(a: Side, b: Side) -> str:
    """The table in HTML; modelled rows are there where one of both has them."""
    body = ""
    for header, name, write, is_modelled in _ROWS:
        left, right = _figure(a.score, name, is_modelled), _figure(b.score, name, is_modelled)
        if is_modelled and left.value is None and right.value is None:
            continue
        body += f'<tr data-row="{name}"><th scope="row">{header}</th>{_cell(left, write)}{_cell(right, write)}'
        body += f"{_difference(left, right, write)}</tr>"
    heads = "".join(f'<th scope="col" title="{html.escape(s.title)}">{s.name}</th>' for s in (a, b))
    return (
        f'{STYLE}<div class="labkit-table-box labkit-compared"><table class="labkit-table"><thead><tr><td></td>{heads}'
        f'<th scope="col">{b.name} − {a.name}</th></tr></thead><tbody>{body}</tbody></table>'
        f'<p class="labkit-legend">{_said(a)}<br>{_said(b)}</p></div>'
    )


def _said(side: Side) -> str:
    why = f": {side.score.error}" if side.score is not None and side.score.what_if is None else ""
    return html.escape(f"{side.name}: {side.title}{why}")


def _figure(score: Score | None, name: str, is_modelled: bool) -> Figure:
    if score is None or score.what_if is None:
        return Figure(None, "1", None, "nothing is kept" if score is None else score.error or "it does not fit")
    if not is_modelled:
        w = score.what_if
        return Figure(getattr(w, name), "1", w.provenance.get(name, Origin.EXACT), w.reason.get(name))
    if score.modelled is None:
        return Figure(None, "1", None, "no model was chosen")
    return score.modelled.figures[name]


def _cell(figure: Figure, write: Callable[[float], str]) -> str:
    if figure.value is None or figure.origin is None:
        return f'<td class="none" title="{html.escape(figure.reason or "")}">–</td>'
    mark, legend = BADGES[figure.origin]
    why = html.escape(figure.reason or legend)
    return (
        f'<td data-value="{figure.value!r}" title="{why}">{write(figure.value)}'
        f'<sup class="{figure.origin}">{mark}</sup></td>'
    )


def _difference(a: Figure, b: Figure, write: Callable[[float], str]) -> str:
    """B minus A: as a share of A, where the figure is no share itself; the number when hovered."""
    if a.value is None or b.value is None:
        return '<td class="none">–</td>'
    gap = b.value - a.value
    if gap == 0:
        return '<td data-value="0">=</td>'
    sign = "+" if gap > 0 else "−"
    is_share = write is format_share
    number = f"{sign}{100 * abs(gap):.1f} points" if is_share else f"{sign}{write(abs(gap))}"
    text = number if is_share or not a.value else f"{sign}{100 * abs(gap) / a.value:.1f} %"
    return f'<td data-value="{gap!r}" title="{number}">{text}</td>'
