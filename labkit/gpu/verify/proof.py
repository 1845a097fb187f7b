"""Proof: what was found about a source, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labkit.gpu.host.reports import LineCounts
from labkit.gpu.resources import Resources


class FindingKind(StrEnum):
    """What is wrong, beside what the CPU runner reports by kinds of its own (``ReportKind``)."""

    COMPILE = "compile"  # a compiler refuses the source
    WRONG_RESULT = "wrong_result"  # another result than the float64 reference
    LAUNCH = "launch"  # the host code of the op cannot launch it
    LOCAL_MEMORY = "local_memory"  # spills, or an array that is not kept in registers
    PTX = "ptx"  # the compiled program does something else than the source, or something that is undefined
    NOT_PROVED = "not_proved"  # something is missing here that the proof needs


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: a ``FindingKind`` or a ``ReportKind``.
        file: of the source line; None where no line is known.
        line: from 1.
        text: what is wrong, with the threads that take part.
        count: how often it was seen.
    """

    kind: str
    file: str | None
    line: int | None
    text: str
    count: int = 1

    @property
    def as_json(self) -> dict[str, Any]:
        """Field names to values."""
        return {name: getattr(self, name) for name in ("kind", "file", "line", "text", "count")}


@dataclass(frozen=True, slots=True)
class Proof:
    """All that was found about one source of an op.

    Attributes:
        op: key in the catalog.
        file: name of the source.
        kernels: name expressions that were tried.
        ok: nothing is wrong and everything was looked at.
        equal: every result is that of the float64 reference, in each order of the threads; None where some could not
            be computed.
        reports: what is wrong, by file and line.
        counts: memory requests by source line, of the sample inputs; modelled.
        resources: architecture (``"sm_90"``) to kernel to what it takes; exact.
        trials: inputs on which it was run.
        not_proved: what was not looked at, and why.
        executed: architectures whose compiled code was run; that of the others was only compiled.
    """

    op: str
    file: str
    kernels: tuple[str, ...]
    equal: bool | None
    reports: tuple[Finding, ...]
    counts: tuple[LineCounts, ...]
    resources: Mapping[str, Mapping[str, Resources]]
    trials: int
    not_proved: tuple[str, ...]
    executed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing is wrong, and everything was looked at."""
        return self.equal is True and not self.reports and not self.not_proved

    @property
    def as_json(self) -> dict[str, Any]:
        """What ``labkit check-kernel --json`` prints."""
        return {
            "op": self.op,
            "file": self.file,
            "ok": self.ok,
            "equal": self.equal,
            "reports": [finding.as_json for finding in self.reports],
            "counts": [_counts_json(counts) for counts in self.counts],
            "resources": {
                arch: {kernel: found.as_json for kernel, found in kernels.items()}
                for arch, kernels in self.resources.items()
            },
            "kernels": list(self.kernels),
            "trials": self.trials,
            "not_proved": list(self.not_proved),
            "executed": list(self.executed),
            "provenance": {"equal": "exact", "reports": "exact", "counts": "modelled", "resources": "exact"},
        }


def _counts_json(counts: LineCounts) -> dict[str, Any]:
    return {name: getattr(counts, name) for name in LineCounts.__slots__} | {
        "lanes_per_request": round(counts.lanes_per_request, 3)
    }
