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
from labkit.views.modelled_columns import best_of, modelled_cell, modelled_columns, modelled_text
from labkit.views.pack_line import pack_line

#: Style of every table of the lab.
STYLE = """
<style>
/* JupyterLab lays tables of outputs out with fixed columns: names and bars would overlap */
.labkit-table { border-collapse: collapse; table-layout: auto !important; width: 100%;
  font-size: 12.5px; line-height: 1.25; font-variant-numeric: tabular-nums; color: var(--jp-ui-font-color1, inherit); }
.labkit-table-box { overflow-x: auto; container-type: inline-size; }
@container (max-width: 720px) {
  .labkit-table { font-size: 11.5px; }
  .labkit-table th, .labkit-table td { padding: 4px 3px; }
  .labkit-table tbody th small { display: none !important; }
}
.labkit-table th, .labkit-table td { padding: 4px 6px; text-align: right; white-space: nowrap; background: none; }
.labkit-table thead th { white-space: normal; vertical-align: bottom; font-weight: 600;
  color: var(--jp-ui-font-color2, #666);  border-bottom: 1px solid var(--jp-border-color1, #bbb); cursor: help; }
.labkit-table tbody tr { background: none !important;
  border-bottom: 1px solid var(--jp-border-color3, rgba(127,127,127,.2)); }
.labkit-table th:first-child { text-align: left; font-weight: 600; }
.labkit-table tbody th small { display: block; font-weight: 400; white-space: normal; min-width: 132px;
  color: var(--jp-ui-font-color2, #666); }
.labkit-table td.error { text-align: left; white-space: normal; color: var(--jp-error-color1, #b32d00); }
.labkit-table td.best { font-weight: 700; }
.labkit-table td.loss { color: var(--jp-error-color1, #b32d00); font-weight: 700; }
.labkit-table td.best::before { content: "▸ "; color: #009E73; }
.labkit-table .bar {
  background: linear-gradient(to right, rgba(230,159,0,.38) var(--share), transparent var(--share)); }
.labkit-table sup { font-size: 9px; margin-left: 3px; padding: 0 3px; border-radius: 3px; cursor: help; line-height: 1;
  color: var(--jp-ui-font-color2, #666); border: 1px solid var(--jp-border-color2, rgba(127,127,127,.45)); }
.labkit-table sup.modelled { color: #B35C00; border-color: #E69F00; border-style: dashed; }
.labkit-legend { font-size: 11px; color: var(--jp-ui-font-color2, #666); margin: 4px 0 0; }
</style>
"""


@dataclass(frozen=True, slots=True)
class StrategyTable:
    """Scores as a table: HTML in a notebook, aligned text elsewhere.

    Attributes:
        scores: one a row, in the order to show.
        choice: the model and GPU whose figures the scores have; None: none was chosen.
    """

    scores: tuple[Score, ...]
    choice: ModelChoice | None = None

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, seq: int = 0) -> str:
        """The table as HTML; ``seq`` is echoed in ``data-seq``, so that a reader knows which request it answers."""
        best, added = _best(self.scores), modelled_columns(self.choice)
        best_modelled = best_of(added, [s.modelled for s in self.scores if s.modelled is not None])
        titles = [(c.header, c.tip) for c in COLUMNS] + [(c.header, c.tip) for c in added]
        head = "".join(f'<th title="{html.escape(tip)}">{header}</th>' for header, tip in titles)
        body = "".join(_row(s, best, [modelled_cell(s.modelled, c, best_modelled) for c in added]) for s in self.scores)
        shown = {w.provenance[c.figure] for s in self.scores if (w := s.what_if) is not None for c in COLUMNS}
        shown |= {Origin.MODELLED} if added else set()
        legend = " &nbsp; ".join(
            f'<sup class="{o}">{mark}</sup> {text}' for o, (mark, text) in BADGES.items() if o in shown
        )
        return (
            f'{STYLE}<div class="labkit-table-box" data-seq="{seq}"><table class="labkit-table">'
            f"<thead><tr><th>strategy</th>{head}</tr></thead><tbody>{body}</tbody></table>"
            f'<p class="labkit-legend labkit-table">{legend} &nbsp; ▸ best of the column</p></div>'
        )

    def __repr__(self) -> str:
        """Aligned text; ``~`` marks a modelled number."""
        added = modelled_columns(self.choice)
        rows = [["strategy", *(c.header for c in COLUMNS), *(c.header for c in added)]]
        notes = [] if self.choice is None else [f"modelled: {self.choice.title}"]
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


def strategy_table(scores: Sequence[Score], choice: ModelChoice | None = None) -> StrategyTable:
    """Scores as a table for a notebook, a widget or a terminal; ``choice`` as the scores were made with."""
    return StrategyTable(tuple(scores), choice)


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


def _row(score: Score, best: dict[str, float], modelled: Sequence[str] = ()) -> str:
    title = html.escape(STRATEGIES[score.strategy].title)
    packs = "" if score.what_if is None else pack_line(score.what_if, short=True) or ""
    why = "" if score.what_if is None else pack_line(score.what_if) or ""
    below = f'<small class="packs" title="{html.escape(why)}">{html.escape(packs)}</small>' if packs else ""
    head = f"<th>{score.strategy}<small>{title}</small>{below}</th>"
    if score.what_if is None:
        text = html.escape(score.error or "")
        wide = len(COLUMNS) + len(modelled)
        return f'<tr data-strategy="{score.strategy}">{head}<td class="error" colspan="{wide}">{text}</td></tr>'
    cells = "".join(_cell(score.what_if, c, best) for c in COLUMNS)
    return f'<tr data-strategy="{score.strategy}">{head}{cells}{"".join(modelled)}</tr>'


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
