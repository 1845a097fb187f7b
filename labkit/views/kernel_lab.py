"""Notebook 04 on the page: proof, source with bars, tables, the picture of the regimes, and two files."""

from __future__ import annotations

import html
import json
from pathlib import Path

from labkit.errors import DataFileError
from labkit.experiments.environment import environment_stamp
from labkit.experiments.kernel_lab import Result
from labkit.files import expanded, reason_of, write_whole
from labkit.views.kernel_lines import line_figures
from labkit.views.kernel_listing import KernelListing
from labkit.views.kernel_proof import KernelProof
from labkit.views.kernel_tables import counts_table, resources_table, time_table
from labkit.views.notebook_figure import NotebookFigure
from labkit.views.plain_table import PlainTable
from labkit.views.regime_figure import regime_figure


def proof(result: Result) -> KernelProof:
    """Whether the source is right; on a machine without a compiler, what is missing."""
    found = None if result.answer is None else result.answer.proof
    return KernelProof(found, result.sources, result.problem)


def source(result: Result) -> KernelListing:
    """The source with its requests as bars and its faults at their lines."""
    answer = result.answer
    counts = () if answer is None or answer.counts is None else answer.counts.whole.counts
    return KernelListing(result.sources, line_figures(counts), () if answer is None else answer.reports)


def counts(result: Result) -> PlainTable | KernelProof:
    """Requests by regime; where nothing could be counted, why."""
    answer = result.answer
    return proof(result) if answer is None or answer.counts is None else counts_table(answer.counts)


def resources(result: Result) -> PlainTable | KernelProof:
    """Registers and occupancy; where nothing could be compiled, why."""
    answer = result.answer
    if answer is None or answer.proof is None or not answer.proof.resources:
        return proof(result)
    return resources_table(answer.proof.resources)


def regimes(result: Result) -> NotebookFigure:
    """Who works on which lengths."""
    parts = ", ".join(f"{s.regime} {s.sequence_share:.0%} of the sequences" for s in result.regimes if s.sequences)
    return NotebookFigure(regime_figure(result.histogram, result.regimes), f"regimes over the lengths: {parts}")


def time(result: Result) -> PlainTable:
    """Measured where there is a GPU, and the floor."""
    return time_table(result.time)


def save_report(result: Result, folder: str | Path) -> list[Path]:
    """Write ``kernel_proof.json`` and ``kernel_report.html`` (one page that needs no network) into a folder.

    Returns:
        Both paths.

    Raises:
        DataFileError: the folder cannot be made or written to.
    """
    target = Path(expanded(folder))
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise DataFileError(f"cannot make folder {str(target)!r}: {reason_of(error)}.") from error
    first = write_whole(target / "kernel_proof.json", json.dumps(result.as_json, indent=2, allow_nan=False) + "\n")
    title = html.escape(f"labkit: {result.config.op}")
    parts = (proof(result), source(result), counts(result), resources(result), time(result))
    body = "".join(part._repr_html_() for part in parts)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        '<body style="font:15px system-ui,sans-serif;max-width:1180px;margin:24px auto;padding:0 16px">'
        f"<h1>{title}</h1>{regimes(result).html(with_library=True)}{body}"
        f"<p>{html.escape(result.finding)}</p><p><small>{environment_stamp()}</small></p></body></html>"
    )
    return [first, write_whole(target / "kernel_report.html", page)]
