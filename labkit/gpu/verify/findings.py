"""Brings findings together: each fault once, by its place, however many launches showed it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from threading import Lock

from labkit.errors import KernelCompileError
from labkit.gpu.host.reports import LineCounts, Report, ReportKind
from labkit.gpu.verify.proof import Finding, FindingKind

_PLACE = re.compile(r"(?P<file>[\w.]+\.cuh?):(?P<line>\d+)")
_ERRORS = re.compile(r"^(?P<file>[^\s(:]+)[(:](?P<line>\d+)[):][^\n]*?error: (?P<text>.*)$", re.MULTILINE)
_MOST_ERRORS = 20
_NAME_MAP = "__nv_name_map"  # NVRTC's own list of name expressions: a second complaint about what the source has wrong


class Findings:
    """Collects from several threads."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}
        self._lock = Lock()

    def add(self, finding: Finding, *key: object) -> None:
        """Add a finding; those of one kind, place and ``key`` are one. Without place and key the text decides."""
        identity = (finding.kind, finding.file, finding.line, *(key or ((finding.text,) if not finding.line else ())))
        with self._lock:
            known = self._found.get(identity)
            self._found[identity] = finding if known is None else replace(known, count=known.count + finding.count)

    def add_reports(self, reports: Iterable[Report]) -> None:
        """What the CPU runner reported."""
        for report in reports:
            self.add(Finding(str(report.kind), report.file, report.line, report.text, report.count))

    @property
    def hung(self) -> bool:
        """A launch did not end."""
        return any(finding.kind == ReportKind.TIMEOUT for finding in self.all)

    @property
    def wrong(self) -> bool:
        """Is there one after which nothing more is tried?"""
        return any(finding.kind != FindingKind.LOCAL_MEMORY for finding in self.all)

    @property
    def all(self) -> tuple[Finding, ...]:
        """By file and line; what has no line comes first."""
        found = list(self._found.values())
        if any(f.kind == ReportKind.TIMEOUT and f.line for f in found):  # the same hang, without its line
            found = [f for f in found if f.kind != ReportKind.TIMEOUT or f.line]
        return tuple(sorted(found, key=lambda f: (f.file or "", f.line or 0, f.kind, f.text)))


def compile_findings(error: KernelCompileError) -> list[Finding]:
    """The errors of a compiler, each with its line."""
    found = [
        Finding(FindingKind.COMPILE, match["file"], int(match["line"]), match["text"])
        for match in _ERRORS.finditer(error.log)
        if match["file"] != _NAME_MAP
    ]
    return found[:_MOST_ERRORS] or [Finding(FindingKind.COMPILE, None, None, str(error))]


def with_place(kind: FindingKind, text: str) -> Finding:
    """A finding whose text names its place."""
    match = _PLACE.search(text)
    return Finding(kind, match["file"] if match else None, int(match["line"]) if match else None, text)


def summed(counts: Iterable[LineCounts]) -> tuple[LineCounts, ...]:
    """Over launches: one entry for each line, kind of access and width."""
    sums: dict[tuple[object, ...], LineCounts] = {}
    for one in counts:
        key = (one.file, one.line, one.access, one.space, one.access_bytes)
        known = sums.get(key)
        sums[key] = one if known is None else _plus(known, one)
    return tuple(sorted(sums.values(), key=lambda c: (c.file, c.line, c.space, c.access, c.access_bytes)))


def _plus(a: LineCounts, b: LineCounts) -> LineCounts:
    def both(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    return replace(
        a,
        requests=a.requests + b.requests,
        lanes=a.lanes + b.lanes,
        sectors=both(a.sectors, b.sectors),
        ideal_sectors=both(a.ideal_sectors, b.ideal_sectors),
        bank_passes=both(a.bank_passes, b.bank_passes),
    )
