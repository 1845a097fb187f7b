"""KernelProof: a proof on the page: a verdict, what is wrong and at which line; or what is missing to say so."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labkit.gpu.verify.proof import Finding, Proof
from labkit.views.palette import CSS
from labkit.views.proof_text import proof_text, title_of

#: Style of verdicts.
PROOF_STYLE = (
    f"\n<style>\n{CSS}"
    """.labkit-proof { font: 13px/1.45 var(--jp-ui-font-family, system-ui, sans-serif); margin: 4px 0; }
.labkit-proof .verdict { font-weight: 700; padding: 1px 8px; border-radius: 4px; border: 1.5px solid; }
.labkit-proof .right { color: var(--labkit-good); }
.labkit-proof .wrong { color: var(--labkit-bad); }
.labkit-proof ol { margin: 6px 0; padding-left: 26px; }
.labkit-proof li { margin: 2px 0; }
.labkit-old .labkit-proof, .labkit-old .labkit-proof .verdict { color: var(--labkit-quiet); font-style: italic; }
.labkit-old .labkit-proof::after { content: " (of the text before your last change)"; }
.labkit-proof code { font-size: 12px; }
</style>
"""
)


@dataclass(frozen=True, slots=True)
class KernelProof:
    """The verdict on a source.

    Attributes:
        proof: what was found; None with ``problem``.
        sources: file to text, for the lines that are shown.
        problem: what is missing on this machine.
    """

    proof: Proof | None
    sources: Mapping[str, str]
    problem: str | None = None

    def _repr_html_(self) -> str:
        if self.proof is None:
            body = f'<span class="verdict wrong">? not proved</span> {html.escape(self.problem or "")}'
        else:
            body = verdict(self.proof) + "".join(
                f"<div>not looked at: {_e(text)}</div>" for text in self.proof.not_proved
            )
            body += findings_list(self.proof.reports)
        return f'{PROOF_STYLE}<div class="labkit-proof">{body}</div>'

    def __repr__(self) -> str:
        return f"not proved: {self.problem}" if self.proof is None else proof_text(self.proof, self.sources)


_RESULTS = {True: "equal to", False: "do NOT equal", None: "could not all be compared with"}


def verdict(proof: Proof) -> str:
    """One line: proved or not, and on what."""
    kind, word = ("right", "✓ proved") if proof.ok else ("wrong", "✗ not proved")
    equal = f"{_RESULTS[proof.equal]} the float64 reference"
    clean = " in three orders of the threads; no race, no access out of bounds"
    orders = "" if proof.not_proved or proof.reports else clean
    kernels = f"{len(proof.kernels)} kernels, {proof.trials} inputs"
    return f'<span class="verdict {kind}">{word}</span> {_e(proof.file)}: {kernels}; results {equal}{orders}'


def findings_list(findings: Iterable[Finding]) -> str:
    """Each with its place, kind and threads."""
    items = "".join(
        f"<li><b>{_e(title_of(f.kind))}</b>{_place(f)}: {_e(f.text)}{f' <i>({f.count} times)</i>' * (f.count > 1)}</li>"
        for f in findings
    )
    return f"<ol>{items}</ol>" if items else ""


def _place(finding: Finding) -> str:
    return "" if finding.line is None else f" <code>{_e(str(finding.file))}:{finding.line}</code>"


def _e(text: str) -> str:
    return html.escape(text)
