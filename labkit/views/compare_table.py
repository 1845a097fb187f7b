"""The table of the comparison: a row a strategy, exact, modelled and measured columns side by side, never mixed."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.batching.strategies import STRATEGIES
from labkit.experiments.compare_rows import Compared
from labkit.provenance import Origin
from labkit.views.badges import BADGES
from labkit.views.compare_columns import COLUMNS, CompareColumn, Group, best_of, can_run, refusal_of, value_of
from labkit.views.modelled_columns import is_above_memory
from labkit.views.table_style import STYLE
from labkit.views.what_if_text import MARKS, aligned

_GROUPED = {group: tuple(column for column in COLUMNS if column.group is group) for group in Group}

_BOUND = "; ".join(f"{c.header}: {c.tip}" for c in COLUMNS if c.name == "bound")

_STYLE = """
<style>
.labkit-compare.wide th, .labkit-compare.wide td { padding: 3px 5px; }
.labkit-compare thead .groups th { text-align: left; vertical-align: top; }
.labkit-compare thead .groups b { color: var(--jp-ui-font-color1, inherit); }
.labkit-compare tbody tr.fastest > th { box-shadow: inset 3px 0 #009E73; padding-left: 8px; }
.labkit-compare td.refusal { text-align: left; white-space: normal; min-width: 150px; font-size: 11px;
  color: var(--jp-ui-font-color2, #777); font-style: italic; }
</style>
"""


@dataclass(frozen=True, slots=True)
class CompareTable:
    """Compared strategies as a table: HTML in a notebook, aligned text elsewhere.

    Attributes:
        rows: one a strategy, fastest first.
        titles: what each group says above its columns: the plan, the GPU, the device.
        order: what the rows are sorted by, in words.
    """

    rows: tuple[Compared, ...]
    titles: dict[Group, str]
    order: str

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """The table as HTML."""
        best = {(c.group, c.name): best_of(c, self.rows) for c in COLUMNS}
        groups = "".join(
            f'<th colspan="{len(columns)}" scope="colgroup"><b>{group}</b> {html.escape(self.titles[group])}</th>'
            for group, columns in _GROUPED.items()
        )
        names = "".join(f'<th{_first(c)} title="{html.escape(c.tip)}">{c.header}</th>' for c in COLUMNS)
        body = "".join(_row(row, best, is_fastest=number == 0) for number, row in enumerate(self.rows))
        return (
            f'{STYLE}{_STYLE}<div class="labkit-table-box"><table class="labkit-table wide labkit-compare"><thead>'
            f'<tr class="groups"><td></td>{groups}</tr><tr><th>strategy</th>{names}</tr></thead>'
            f'<tbody>{body}</tbody></table><p class="labkit-legend labkit-table">{self._legend()}</p></div>'
        )

    def _legend(self) -> str:
        shown = {figure.origin for row in self.rows for column in COLUMNS if (figure := column.figure(row)) is not None}
        marks = [f'<sup class="{o}">{mark}</sup> {text}' for o, (mark, text) in BADGES.items() if o in shown]
        below = " &nbsp; ".join([*marks, "▸ best of the column", html.escape(self.order)])
        return "<br>".join([below, *map(html.escape, self._below())])

    def _below(self) -> list[str]:
        """What a word of the table means, and what has no room on the GPU."""
        over = [row.strategy for row in self.rows if is_above_memory(row.modelled, "peak_bytes")]
        too_large = f"! does not fit the GPU: {', '.join(over)}; the time is as if it had more memory"
        return [_BOUND, *([too_large] if over else [])]

    def __repr__(self) -> str:
        """Aligned text, every number with the mark of its origin."""
        header = ["strategy", *(_text_header(c) for c in COLUMNS)]
        lines = aligned([header, *([str(row.strategy), *_texts(row)] for row in self.rows)])
        titles = [f"{group}: {title}" for group, title in self.titles.items()]
        why_not = [(row, dict.fromkeys(refusal_of(group, row) for group in Group)) for row in self.rows]
        refused = [f"{row.strategy}: {why}" for row, whys in why_not for why in whys if why is not None]
        return "\n".join(
            [*lines, "; ".join(text for _, text in MARKS.values()), *titles, self.order, *self._below(), *refused]
        )


def _text_header(column: CompareColumn) -> str:
    return f"{MARKS[Origin(column.group)][0]}{column.header}"


def _texts(row: Compared) -> Iterator[str]:
    for column in COLUMNS:
        figure = column.figure(row)
        if column.word is not None and (word := column.word(row)) is not None:
            yield MARKS[Origin(column.group)][0] + word[0]
        elif figure is None or figure.value is None or figure.origin is None:
            yield "-"
        else:
            end = "!" if _is_above_memory(row, column) else ""
            yield MARKS[figure.origin][0] + column.write(figure.value) + end


def _first(column: CompareColumn, *classes: str) -> str:
    """The attribute of the first cell of a group, which has a line on its left."""
    names = [*classes, *(["first"] if _GROUPED[column.group][0] is column else [])]
    return f' class="{" ".join(names)}"' if names else ""


def _row(row: Compared, best: dict[tuple[Group, str], float | None], *, is_fastest: bool) -> str:
    marked = best if can_run(row) else dict.fromkeys(best)
    cells = "".join(_group(row, group, marked) for group in Group)
    if row.error is not None:
        cells = f'<td class="error first" colspan="{len(COLUMNS)}">{html.escape(row.error)}</td>'
    kind = ' class="fastest"' if is_fastest and row.error is None else ""
    title = html.escape(STRATEGIES[row.strategy].title)
    return f'<tr data-strategy="{row.strategy}"{kind}><th title="{title}">{row.strategy}</th>{cells}</tr>'


def _group(row: Compared, group: Group, best: dict[tuple[Group, str], float | None]) -> str:
    columns, why = _GROUPED[group], refusal_of(group, row)
    if why is not None:
        return f'<td class="refusal first" data-group="{group}" colspan="{len(columns)}">{html.escape(why)}</td>'
    return "".join(_cell(row, column, best[group, column.name]) for column in columns)


def _word(column: CompareColumn, word: tuple[str, str]) -> str:
    text, why = map(html.escape, word)
    origin, data = Origin(column.group), f'data-group="{column.group}" data-figure="{column.name}"'
    return (
        f'<td {data} data-value="{text}"{_first(column)} title="{why}">{text}'
        f'<sup class="{origin}" title="{why}">{BADGES[origin][0]}</sup></td>'
    )


def _cell(row: Compared, column: CompareColumn, best: float | None) -> str:
    if column.word is not None and (word := column.word(row)) is not None:
        return _word(column, word)
    figure, value = column.figure(row), value_of(column, row)
    data = f'data-group="{column.group}" data-figure="{column.name}"'
    if figure is None or value is None or figure.origin is None:
        why = html.escape("there is no such figure" if figure is None else figure.reason or "")
        return f'<td {data}{_first(column, "none")} title="{why}">–</td>'
    mark, legend = BADGES[figure.origin]
    why = html.escape(figure.reason or legend)
    over = _is_above_memory(row, column)
    kinds = {"best": value == best and not over, "loss": over or (column.loss and value > 0), "bar": column.bar}
    classes = _first(column, *(name for name, on in kinds.items() if on))
    share = f' style="--share:{100 * value:.1f}%"' if column.bar else ""
    return (
        f'<td {data} data-value="{value!r}"{classes}{share} title="{why}">{column.write(value)}{"!" if over else ""}'
        f'<sup class="{figure.origin}" title="{why}">{mark}</sup></td>'
    )


def _is_above_memory(row: Compared, column: CompareColumn) -> bool:
    return column.group is Group.MODELLED and is_above_memory(row.modelled, column.name)
