"""Reads what a kernel's program wrote: its result file, and the messages of the sanitizers."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from pathlib import Path

from labkit.errors import KernelLaunchError
from labkit.gpu.host.process import Finished
from labkit.gpu.host.reports import HostRun, LineCounts, Report, ReportKind
from labkit.gpu.host.symbols import source_lines

_UNDEFINED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: runtime error: (?P<text>.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"ERROR: AddressSanitizer:? (?P<text>[^\n]*)")
_FRAME = re.compile(r"^\s*#\d+ .* in \S+.*? (?P<file>[^\s:]+):(?P<line>\d+)", re.MULTILINE)

_UNKNOWN = "an unknown line"


def read_outcome(program: Path, source_name: str, written: str, done: Finished, timeout_s: float) -> HostRun:
    """The run behind a finished process.

    Args:
        program: the executable, for source lines.
        source_name: of the kernel.
        written: text of the result file; ends with the line ``end`` when the program got there.
        done: the process.
        timeout_s: what it had; a checked program whose time is up says at which line it is.

    Raises:
        KernelLaunchError: the program ended without a result, and no signal or sanitizer says why.
    """
    rows = [line.split("\t") for line in written.splitlines()]
    whole = bool(rows) and rows[-1][0] in ("end", "stopped")
    reports = _sanitizer_reports(done.stderr)
    if done.timed_out and not whole:
        text = f"the kernel did not end within {timeout_s:g} s: a loop without end, or a launch too large"
        return HostRun((Report(ReportKind.TIMEOUT, None, None, text), *reports), (), completed=False)
    if not whole and not reports:
        if done.returncode >= 0:
            raise KernelLaunchError(
                f"the program of {source_name} ended with code {done.returncode} and no result: {done.stderr.strip()}"
            )
        text = f"the kernel was ended by {signal.Signals(-done.returncode).name}"
        reports = [Report(ReportKind.CRASH, None, None, text)]
    found = [row for row in rows if row[0] == "report"]
    counted = [row for row in rows if row[0] == "count"]
    addresses = {int(text, 16) for row in found for text in row[2:4]} | {int(row[1], 16) for row in counted}
    lines = source_lines(program, addresses)
    reports = [*(_report(row, lines, timeout_s) for row in found), *reports]
    return HostRun(
        reports=tuple(reports),
        counts=_counts(counted, lines),
        completed=whole and rows[-1][0] == "end",
        printed=done.stdout,
    )


def _report(row: list[str], lines: dict[int, tuple[str, int]], timeout_s: float) -> Report:
    _, kind, pc, other, count, text = row
    place, other_place = lines.get(int(pc, 16)), lines.get(int(other, 16))
    text = text.replace("{pc}", _spelled(place)).replace("{other}", _spelled(other_place))
    text = text.replace("{time}", f"{timeout_s:g} s")
    file, line = place if place else (None, None)
    return Report(ReportKind(kind), file, line, text, int(count))


def _spelled(place: tuple[str, int] | None) -> str:
    return f"{place[0]}:{place[1]}" if place else _UNKNOWN


def _counts(rows: list[list[str]], lines: dict[int, tuple[str, int]]) -> tuple[LineCounts, ...]:
    """Sums over the addresses of each line: unrolled and inlined copies of an access are one place in the source."""
    sums: dict[tuple[str, int, str, str, int], list[int]] = defaultdict(lambda: [0] * 5)
    for _, pc, access, space, size, *numbers in rows:
        file, line = lines.get(int(pc, 16), (_UNKNOWN, 0))
        total = sums[file, line, access, space, int(size)]
        for i, number in enumerate(numbers):
            total[i] += int(number)
    result = []
    for (file, line, access, space, width), (requests, lanes, sectors, ideal, passes) in sorted(sums.items()):
        is_global = space == "global"
        result.append(
            LineCounts(
                file=file,
                line=line,
                access=access,
                space=space,
                access_bytes=width,
                requests=requests,
                lanes=lanes,
                sectors=sectors if is_global else None,
                ideal_sectors=ideal if is_global else None,
                bank_passes=None if is_global else passes,
            )
        )
    return tuple(result)


def _sanitizer_reports(messages: str) -> list[Report]:
    reports: dict[Report, None] = {}
    for match in _UNDEFINED.finditer(messages):
        file, line = Path(match["file"]).name, int(match["line"])
        reports[Report(ReportKind.UNDEFINED, file, line, f"{match['text']}, at {file}:{line}")] = None
    fault = _ADDRESS.search(messages)
    if fault:
        frames = [(Path(m["file"]).name, int(m["line"])) for m in _FRAME.finditer(messages, fault.end())]
        place = next((frame for frame in frames if frame[0].endswith((".cu", ".cuh"))), None)
        text = f"AddressSanitizer: {fault['text'].strip()}, at {_spelled(place)}"
        reports[Report(ReportKind.ADDRESS, place[0] if place else None, place[1] if place else None, text)] = None
    return list(reports)
