"""A proof of a kernel as plain text: what is wrong over the lines of the source, then counts and resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from labkit.gpu.host.reports import LineCounts
from labkit.gpu.resources import Resources
from labkit.gpu.verify.proof import Finding, Proof

_TITLES = {
    "compile": "does not compile",
    "wrong_result": "wrong result",
    "launch": "cannot be launched",
    "local_memory": "local memory",
    "ptx": "compiled program",
    "out_of_bounds": "out of bounds",
    "uninitialised": "uninitialised read",
    "divergent_barrier": "divergent barrier",
    "const_write": "write to const",
    "output": "too much output",
    "address": "AddressSanitizer",
    "undefined": "undefined behaviour",
}


_RESULTS = {
    True: "results equal",
    False: "results do NOT equal",
    None: "results could not all be compared with",
}


def proof_text(proof: Proof, sources: Mapping[str, str]) -> str:
    """The whole report.

    Args:
        proof: of ``prove``.
        sources: name of a file to its text, for the lines that are shown.
    """
    head = f"{proof.file} as {proof.op}: {'proved' if proof.ok else 'NOT proved'}"
    kernels = f"{len(proof.kernels)} kernels, {proof.trials} inputs; {_RESULTS[proof.equal]} the float64 reference"
    executed = [f"  compiled code executed: {', '.join(proof.executed)} alone"] if proof.executed else []
    lines = [head, f"  {kernels}", *executed, *(f"  not looked at: {text}" for text in proof.not_proved)]
    for finding in proof.reports:
        lines += ["", *_finding(finding, sources)]
    if proof.counts:
        lines += [
            "",
            "Memory requests of warps by source line, on the sample inputs (modelled):",
            *_counts(proof.counts),
        ]
    if proof.resources:
        lines += ["", "What the compiler took, most of any kernel (exact):", *_resources(proof.resources)]
    return "\n".join(lines)


def title_of(kind: str) -> str:
    """A kind of finding in words."""
    return _TITLES.get(kind, kind)


def _finding(finding: Finding, sources: Mapping[str, str]) -> list[str]:
    """What and where, the line of the source, and what is wrong with it."""
    title = title_of(finding.kind)
    times = f", {finding.count} times" if finding.count > 1 else ""
    if finding.line is None:
        return [f"{title}{times}", f"  {finding.text}"]
    place = f"{finding.file}:{finding.line}: {title}{times}"
    code = sources.get(finding.file or "", "").splitlines()
    shown = [f"  > {code[finding.line - 1].strip()}"] if 0 < finding.line <= len(code) else []
    return [place, *shown, f"  {finding.text}"]


def _counts(counts: Iterable[LineCounts]) -> list[str]:
    rows: list[tuple[str, ...]] = [("line", "", "bytes", "requests", "lanes", "sectors / ideal", "bank passes")]
    for one in counts:
        ideal = "" if one.sectors is None or not one.ideal_sectors else f"{one.sectors / one.ideal_sectors:.2f}"
        passes = "" if one.bank_passes is None else f"{one.bank_passes / one.requests:.2f}"
        place, access = f"{one.file}:{one.line}", f"{one.space} {one.access}"
        lanes = f"{one.lanes_per_request:.1f}"
        rows.append((place, access, str(one.access_bytes), str(one.requests), lanes, ideal, passes))
    return _aligned(rows, left=2)


def _resources(resources: Mapping[str, Mapping[str, Resources]]) -> list[str]:
    rows: list[tuple[str, ...]] = [("", "registers", "shared bytes", "local bytes", "least occupancy")]
    for arch, kernels in resources.items():
        most: dict[str, int] = defaultdict(int)
        for taken in kernels.values():
            for name in ("registers", "shared_bytes", "stack_bytes"):
                most[name] = max(most[name], getattr(taken, name))
        least = min(taken.occupancy for taken in kernels.values())
        rows.append((arch, *(str(most[n]) for n in ("registers", "shared_bytes", "stack_bytes")), f"{least:.0%}"))
    return _aligned(rows, left=1)


def _aligned(rows: list[tuple[str, ...]], left: int) -> list[str]:
    """Columns of their own width, the first ``left`` of them from the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
