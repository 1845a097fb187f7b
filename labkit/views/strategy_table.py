"""The table of all strategies: every number with a badge of where it comes from, the best of each column marked."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.batching.strategies import STRATEGIES
from labkit.batching.what_if import WhatIf
from labkit.experiments.scores import Score
from labkit.experiments.what_if_model import ModelChoice
from labkit.provenance import Origin
from labkit.views.badges import BADGES as BADGES
from labkit.views.columns import COLUMNS, Column
from labkit.views.measured_columns import NOTHING, Measured
from labkit.views.modelled_columns import (
    best_of,
    columns_explained,
    does_not_fit,
    modelled_cell,
    modelled_columns,
    modelled_text,
)
from labkit.views.pack_line import pack_line
from labkit.views.table_style import STYLE as STYLE


@dataclass(frozen=True, slots=True)
class StrategyTable:
    """Scores as a table: HTML in a notebook, aligned text elsewhere.

    Attributes:
        scores: one a row, in the order to show.
        choice: the model and GPU whose figures the scores have; None: none was chosen.
        measured: what ran on a device.
        note: what is to be said of the modelled figures as long as there are none.
    """

    scores: tuple[Score, ...]
    choice: ModelChoice | None = None
    measured: Measured = NOTHING
    note: str = ""

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, seq: int = 0) -> str:
        """The table as HTML; ``seq`` is echoed in ``data-seq``, so that a reader knows which request it answers."""
        best, added, measured = _best(self.scores), modelled_columns(self.choice), self.measured
        best_modelled = best_of(added, [s.modelled for s in self.scores if s.modelled is not None])
        best_measured = measured.best()
        body = "".join(
            _row(
                s,
                best,
                _begun([_classed(modelled_cell(s.modelled, c, best_modelled), c.header) for c in added]),
                _begun(
                    [
                        _classed(cell, c.header)
                        for cell, c in zip(measured.cells(s.strategy, best_measured), measured.columns, strict=True)
                    ]
                ),
            )
            for s in self.scores
        )
        kind = "labkit-table wide" if added or measured.columns else "labkit-table"
        is_widest = bool(added and measured.columns)
        kind += " widest" if is_widest else ""
        legend = f"{self._legend()} &nbsp; ▸ best of the column{_LEFT_OUT if is_widest else ''}"
        return (
            f'{STYLE}<div class="labkit-table-box" data-seq="{seq}"><table class="{kind}">'
            f"<thead>{self._groups()}<tr><th>strategy</th>{self._heads()}</tr></thead><tbody>{body}</tbody></table>"
            f'<p class="labkit-legend labkit-table">{"<br>".join([legend, *map(html.escape, self._below())])}</p></div>'
        )

    def _heads(self) -> str:
        added, measured = modelled_columns(self.choice), self.measured.columns
        titles = [(c.header, c.tip) for c in COLUMNS] + [(c.header, c.tip) for c in added]
        titles += [(c.header, c.tip) for c in measured]
        firsts = {len(COLUMNS), len(COLUMNS) + len(added)}
        most = {c.header for c in measured if c.most_is_best}  # of which the largest comes first
        return "".join(
            f'<th title="{html.escape(tip)}" class="{_kind(header, i in firsts)}"'
            f"{' data-most' if header in most else ''}>{header}</th>"
            for i, (header, tip) in enumerate(titles)
        )

    def _groups(self) -> str:
        """What the columns are of, where there are several kinds of them."""
        added, measured = modelled_columns(self.choice), self.measured.columns
        if not added and not measured:
            return ""
        found = f"<th></th>{_spanning([c.header for c in COLUMNS], 'these lengths')}"
        if added and self.choice is not None:
            text = html.escape(f"modelled: {self.choice.title}{self.note}")
            found += _spanning([c.header for c in added], text)
        if measured:
            stale = "; <i>slanted: for earlier settings</i>" if self.measured.stale else ""
            text = f"measured: {html.escape(self.measured.title)}{stale}"
            found += _spanning([c.header for c in measured], text)
        return f'<tr class="groups">{found}</tr>'

    def _legend(self) -> str:
        """The badges that are on the table, explained."""
        shown = {w.provenance[c.figure] for s in self.scores if (w := s.what_if) is not None for c in COLUMNS}
        shown |= {Origin.MODELLED} if modelled_columns(self.choice) else set()
        for record in self.measured.records.values():
            shown |= {record.provenance[c.figure] for c in self.measured.columns if c.figure in record.provenance}
        return " &nbsp; ".join(
            f'<sup class="{o}">{mark}</sup> {text}' for o, (mark, text) in BADGES.items() if o in shown
        )

    def _below(self) -> list[str]:
        """What the modelled columns mean, and what has no room on the GPU."""
        found = ((s.strategy, s.modelled) for s in self.scores)
        return [*columns_explained(self.choice), *does_not_fit(found, self.choice)]

    def __repr__(self) -> str:
        """Aligned text; ``~`` marks a modelled number."""
        added = modelled_columns(self.choice)
        rows = [["strategy", *(c.header for c in COLUMNS), *(c.header for c in added)]]
        notes = [] if self.choice is None else [f"modelled: {self.choice.title}", *self._below()]
        for s in self.scores:
            if s.what_if is None:
                notes.append(f"{s.strategy}: {s.error}")
                continue
            if line := pack_line(s.what_if):
                notes.append(f"{s.strategy}: {line}")
            cells = [_mark(s.what_if, c) + c.text(c.value(s.what_if)) for c in COLUMNS]
            rows.append([str(s.strategy), *cells, *(modelled_text(s.modelled, c) for c in added)])
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(x.ljust(w) if i == 0 else x.rjust(w) for i, (x, w) in enumerate(zip(r, widths, strict=True)))
            for r in rows
        ]
        return "\n".join([*lines, "~ modelled (an estimate or a bound); all other numbers are exact", *notes])


def strategy_table(
    scores: Sequence[Score], choice: ModelChoice | None = None, measured: Measured = NOTHING, note: str = ""
) -> StrategyTable:
    """Scores as a table for a notebook, a widget or a terminal; ``choice`` as the scores were made with."""
    return StrategyTable(tuple(scores), choice, measured, note)


def _mark(w: WhatIf, column: Column) -> str:
    return "~" if w.provenance[column.figure] is Origin.MODELLED else ""


def _best(scores: Sequence[Score]) -> dict[str, float]:
    """Smallest value of each ranked column, where the strategies differ in it."""
    found = [s.what_if for s in scores if s.what_if is not None]
    best = {}
    for column in COLUMNS:
        values = {column.value(w) for w in found}
        if column.ranked and len(values) > 1:
            best[column.header] = min(values)
    return best


#: Columns that a window gives up first when exact, modelled and measured figures stand side by side.
MINOR = ("shapes", "ghost rows", "kernels", "ops")
_LEFT_OUT = f' <span class="left-out">&nbsp; in a wider window also: {", ".join(MINOR)}</span>'


def _kind(header: str, is_first: bool) -> str:
    return " ".join(name for name, on in (("first", is_first), ("minor", header in MINOR)) if on)


def _classed(cell: str, header: str) -> str:
    """A cell, marked where its column is one that can be left out."""
    return cell.replace('class="', 'class="minor ', 1) if header in MINOR else cell


def _spanning(headers: Sequence[str], text: str) -> str:
    """The head of a group: it spans what is always there; each column that can be left out has a cell of its own."""
    left_out = sum(header in MINOR for header in headers)
    return (
        f'<th colspan="{len(headers) - left_out}" scope="colgroup">{text}</th>' + '<th class="minor"></th>' * left_out
    )


def _begun(cells: list[str]) -> list[str]:
    """Cells of a group, with a line before the first."""
    return [cell.replace('class="', 'class="first ', 1) if i == 0 else cell for i, cell in enumerate(cells)]


def _row(score: Score, best: dict[str, float], modelled: Sequence[str] = (), measured: Sequence[str] = ()) -> str:
    title = html.escape(STRATEGIES[score.strategy].title)
    packs = "" if score.what_if is None else pack_line(score.what_if, short=True) or ""
    why = "" if score.what_if is None else pack_line(score.what_if) or ""
    below = f'<small class="packs" title="{html.escape(why)}">{html.escape(packs)}</small>' if packs else ""
    head = f'<th scope="row" title="{title}">{score.strategy}<small>{title}</small>{below}</th>'
    if score.what_if is None:
        text = html.escape(score.error or "")
        left_out = sum(c.header in MINOR for c in COLUMNS) + sum('class="minor' in cell for cell in modelled)
        wide = len(COLUMNS) + len(modelled) - left_out
        cells = f'<td class="error" colspan="{wide}">{text}</td>' + '<td class="minor"></td>' * left_out
    else:
        cells = "".join([*(_classed(_cell(score.what_if, c, best), c.header) for c in COLUMNS), *modelled])
    return f'<tr data-strategy="{score.strategy}">{head}{cells}{"".join(measured)}</tr>'


def _cell(w: WhatIf, column: Column, best: dict[str, float]) -> str:
    value = column.value(w)
    origin = w.provenance[column.figure]
    mark, legend = BADGES[origin]
    why = html.escape(w.reason.get(column.figure, legend))
    marks = {"best": best.get(column.header) == value, "bar": column.bar, "loss": column.loss and value > 0}
    classes = " ".join(name for name, on in marks.items() if on)
    share = f' style="--share:{100 * value:.1f}%"' if column.bar else ""
    exact = f"{getattr(w, column.figure):,} {column.figure.replace('_', ' ')}"
    return (
        f'<td data-figure="{column.figure}" data-value="{value!r}" class="{classes}"{share} title="{exact}">'
        f'{column.text(value)}<sup class="{origin}" title="{why}">{mark}</sup></td>'
    )
