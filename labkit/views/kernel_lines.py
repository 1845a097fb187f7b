"""What is known of each line of a kernel's source: its requests to memory as bars, and what is wrong with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from labkit.experiments.kernel_counts import least_passes
from labkit.gpu.host.reports import LineCounts
from labkit.gpu.verify.proof import Finding
from labkit.views.proof_text import title_of


@dataclass(frozen=True, slots=True)
class LineFigures:
    """The requests of one line; modelled.

    Attributes:
        file, line: where.
        requests: of warps, to global and shared memory.
        lanes: active in a request, at most 32.
        sectors: 32-byte sectors touched over those of the same words side by side; None without global memory.
        passes: over the banks, over the least that the bytes need; None without shared memory.
        tip: the same, by kind of access, in words.
    """

    file: str
    line: int
    requests: int
    lanes: float
    sectors: float | None
    passes: float | None
    tip: str


def line_figures(counts: Iterable[LineCounts]) -> tuple[LineFigures, ...]:
    """One entry a line, by file and line; lines that the compiler could not name are left out."""
    lines: dict[tuple[str, int], list[LineCounts]] = defaultdict(list)
    for one in counts:
        if one.line:
            lines[one.file, one.line].append(one)
    return tuple(_figures(file, line, found) for (file, line), found in sorted(lines.items()))


def figures_as_json(figures: Iterable[LineFigures]) -> list[dict[str, Any]]:
    """For the editor."""
    return [asdict(one) for one in figures]


def marks_as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """What is wrong, for the editor: with a title in words; what has a line comes first."""
    placed = sorted(findings, key=lambda one: one.line is None)
    return [{**one.as_json, "title": title_of(one.kind)} for one in placed]


def _figures(file: str, line: int, found: list[LineCounts]) -> LineFigures:
    requests = sum(one.requests for one in found)
    ideal = sum(one.ideal_sectors or 0 for one in found)
    least = sum(least_passes(one) for one in found if one.bank_passes is not None)
    return LineFigures(
        file=file,
        line=line,
        requests=requests,
        lanes=sum(one.lanes for one in found) / requests,
        sectors=sum(one.sectors or 0 for one in found) / ideal if ideal else None,
        passes=sum(one.bank_passes or 0 for one in found) / least if least else None,
        tip="\n".join(_sentence(one) for one in found),
    )


def _sentence(one: LineCounts) -> str:
    text = (
        f"{one.space} {one.access} of {one.access_bytes} bytes a lane: {one.requests:,} requests, "
        f"{one.lanes_per_request:.1f} of 32 lanes active"
    )
    if one.sectors is not None and one.ideal_sectors:
        text += f", {one.sectors:,} sectors where {one.ideal_sectors:,} would do"
    if one.bank_passes is not None:
        text += f", {one.bank_passes:,} bank passes where {least_passes(one):,.0f} would do"
    return text
