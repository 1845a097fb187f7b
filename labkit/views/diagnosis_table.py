"""Which symptoms apply, with the numbers that gave them away; and what would have to change."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.experiments.diagnosis import Finding
from labkit.experiments.next_bound import Move, NextBound
from labkit.experiments.symptoms import Sign
from labkit.units import format_bytes, format_seconds
from labkit.views.badges import BADGES
from labkit.views.plain_table import PlainTable
from labkit.views.table_style import STYLE
from labkit.views.what_if_text import MARKS

_STYLE = """
<style>
.labkit-diagnosis td, .labkit-diagnosis tbody th { text-align: left !important; white-space: normal !important;
  vertical-align: top; }
.labkit-diagnosis thead th { text-align: left !important; cursor: default; }
.labkit-diagnosis td.signs { min-width: 190px; }
.labkit-diagnosis td.signs div + div { margin-top: 2px; }
.labkit-diagnosis td.signs span { color: var(--jp-ui-font-color2, #777); }
.labkit-diagnosis td.remedy { font-weight: 600; }
</style>
"""
_HEADER = ("symptom", "the numbers", "cause", "check", "remedy")
_NOTHING = "No symptom applies: nothing here is above its threshold."


@dataclass(frozen=True, slots=True)
class DiagnosisTable:
    """Findings as a table: HTML in a notebook, lines elsewhere.

    Attributes:
        findings: the symptoms that apply.
    """

    findings: tuple[Finding, ...]

    def _repr_html_(self) -> str:
        if not self.findings:
            return f"<p>{_NOTHING}</p>"
        head = "".join(f"<th>{name}</th>" for name in _HEADER)
        body = "".join(_row(finding) for finding in self.findings)
        return (
            f'{STYLE}{_STYLE}<div class="labkit-table-box"><table class="labkit-table labkit-diagnosis"><thead>'
            f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        if not self.findings:
            return _NOTHING
        lines = []
        for finding in self.findings:
            s = finding.symptom
            lines.append(f"{s.name} ({s.threshold})")
            lines += [f"  {_mark(sign)}{sign.text}: {', '.join(names)}" for sign, names in grouped(finding.signs)]
            lines += [f"  cause: {s.cause}", f"  check: {s.check}", f"  remedy: {s.remedy}"]
        return "\n".join(lines)


def grouped(signs: Sequence[tuple[str, Sign]]) -> list[tuple[Sign, list[str]]]:
    """Strategies that show the same number, together."""
    found: dict[str, tuple[Sign, list[str]]] = {}
    for strategy, sign in signs:
        found.setdefault(sign.text, (sign, []))[1].append(str(strategy))
    return list(found.values())


def _mark(sign: Sign) -> str:
    return "" if sign.figure.origin is None else MARKS[sign.figure.origin][0]


def _row(finding: Finding) -> str:
    s = finding.symptom
    signs = "".join(
        f"<div>{html.escape(sign.text)}{_badge(sign)} <span>{', '.join(names)}</span></div>"
        for sign, names in grouped(finding.signs)
    )
    return (
        f'<tr data-symptom="{html.escape(s.name)}"><th>{html.escape(s.name)}'
        f'<small>{html.escape(s.threshold)}</small></th><td class="signs">{signs}</td><td>{html.escape(s.cause)}</td>'
        f'<td>{html.escape(s.check)}</td><td class="remedy">{html.escape(s.remedy)}</td></tr>'
    )


def _badge(sign: Sign) -> str:
    origin = sign.figure.origin
    if origin is None:
        return ""
    mark, legend = BADGES[origin]
    why = html.escape(sign.figure.reason or legend)
    return f'<sup class="{origin}" title="{why}">{mark}</sup>'


def next_bound_table(found: NextBound | None, strategy: str, gpu: str) -> PlainTable:
    """What would have to change so that something else rules the time of a strategy.

    Args:
        found: what was tried; None: there is no modelled time.
        strategy: which; gpu: where.
    """
    header = ("change", "bound", "epoch", "against now", "peak")
    if found is None:
        return PlainTable(header, (), f"{strategy} has no modelled time on {gpu}")
    rows = tuple(_move(move, found.now) for move in (found.now, *found.moves))
    note = f"; {found.note}" if found.note else ""
    return PlainTable(header, rows, f"all modelled: {strategy} on {gpu}{note}")


def _move(move: Move, now: Move) -> tuple[str, ...]:
    moved = "" if move.bound is now.bound else " ◂ another bound"
    return (
        move.what,
        f"{move.bound}{moved}",
        format_seconds(move.time_s),
        f"{move.time_s / now.time_s:.2f} x",
        format_bytes(move.peak_bytes) + ("" if move.fits else ", does not fit"),
    )
