"""KernelListing: the source of a kernel with a bar, and its number, beside every line that asks for memory."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labkit.gpu.verify.proof import Finding
from labkit.views.kernel_lines import LineFigures
from labkit.views.proof_text import title_of

_STYLE = """
<style>
.labkit-listing { max-height: 460px; overflow: auto; border: 1px solid rgba(127,127,127,.35); border-radius: 4px;
  margin: 4px 0 10px; }
.labkit-listing table { border-collapse: collapse; font: 12px/1.45 var(--jp-code-font-family, ui-monospace, monospace);
  table-layout: auto !important; font-variant-numeric: tabular-nums; color: var(--jp-content-font-color1, inherit); }
.labkit-listing tr { background: none !important; }
.labkit-listing td, .labkit-listing th { padding: 0 6px; text-align: right; white-space: pre; border: 0;
  background-color: transparent; }
.labkit-listing thead th { position: sticky; top: 0; font-weight: 600; font-size: 11px; padding: 3px 6px;
  background: var(--jp-layout-color2, #eee); color: var(--jp-ui-font-color1, #222); z-index: 1; cursor: help; }
.labkit-listing td.code, .labkit-listing th.code { text-align: left; padding-left: 12px; width: 100%; }
.labkit-listing td.number { color: var(--labkit-quiet, #666); }
.labkit-listing td.lanes { background: linear-gradient(to right, rgba(0,114,178,.38) var(--share), transparent 0); }
.labkit-listing td.waste { background: linear-gradient(to right, rgba(230,159,0,.5) var(--share), transparent 0); }
.labkit-listing tr.wrong td.code, .labkit-listing td.why { border-left: 4px solid #D55E00; }
.labkit-listing tr.wrong td { background-color: rgba(213,94,0,.12); }
.labkit-listing td.why { text-align: left; white-space: normal; font-family: var(--jp-ui-font-family, sans-serif);
  padding: 1px 12px 5px; }
</style>
"""

_HEAD = (
    "<thead><tr><th>line</th>"
    '<th title="lanes of a warp that take part in a request, of 32">lanes</th>'
    '<th title="32-byte sectors touched, over the sectors of the same words side by side">sectors</th>'
    '<th title="passes over the banks of shared memory, over the least that the bytes need">banks</th>'
    '<th class="code">{file}</th></tr></thead>'
)


@dataclass(frozen=True, slots=True)
class KernelListing:
    """The source as a picture.

    Attributes:
        sources: file to text.
        figures: of lines; modelled.
        findings: what is wrong, shown below its line.
    """

    sources: Mapping[str, str]
    figures: tuple[LineFigures, ...]
    findings: tuple[Finding, ...] = ()

    def _repr_html_(self) -> str:
        asked = {one.file for one in self.figures} | {one.file for one in self.findings}
        listings = "".join(self._file(name, text) for name, text in self.sources.items() if name in asked)
        return f"{_STYLE}{listings}"

    def __repr__(self) -> str:
        texts = {name: text.splitlines() for name, text in self.sources.items()}
        lines = [
            f"{one.file}:{one.line:<4} {one.lanes:5.1f} lanes {_ratio(one.sectors):>8} sectors {_ratio(one.passes):>7}"
            f" banks  {texts[one.file][one.line - 1].strip()}"
            for one in self.figures
            if one.line <= len(texts.get(one.file, ()))
        ]
        return "\n".join(lines) or "no line asks for memory"

    def _file(self, name: str, text: str) -> str:
        figures = {one.line: one for one in self.figures if one.file == name}
        wrong: dict[int | None, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            if finding.file == name:
                wrong[finding.line].append(finding)
        rows = (
            _row(number, line, figures.get(number), wrong[number])
            for number, line in enumerate(text.splitlines(), start=1)
        )
        head = _HEAD.format(file=html.escape(name))
        return f'<div class="labkit-listing"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _row(number: int, line: str, figures: LineFigures | None, findings: Iterable[Finding]) -> str:
    cells = "<td></td><td></td><td></td>"
    if figures is not None:
        tip = html.escape(figures.tip, quote=True)
        cells = (
            _cell("lanes", figures.lanes / 32, f"{figures.lanes:.1f}", tip)
            + _cell("waste", _waste(figures.sectors), _ratio(figures.sectors), tip)
            + _cell("waste", _waste(figures.passes), _ratio(figures.passes), tip)
        )
    code = f'<td class="code">{html.escape(line)}</td>'
    said = [f"<b>{html.escape(title_of(f.kind))}</b>: {html.escape(f.text)}" for f in findings]
    state = ' class="wrong"' if said else ""
    why = "".join(f'<tr><td colspan="4"></td><td class="why">{text}</td></tr>' for text in said)
    return f'<tr{state}><td class="number">{number}</td>{cells}{code}</tr>{why}'


def _cell(kind: str, share: float, text: str, tip: str) -> str:
    return f'<td class="{kind}" style="--share:{100 * share:.0f}%" title="{tip}">{text}</td>' if text else "<td></td>"


def _waste(ratio: float | None) -> float:
    """Share of what is fetched that nobody asked for."""
    return 0.0 if ratio is None else max(0.0, 1 - 1 / ratio)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}×"
