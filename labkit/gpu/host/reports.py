"""What a run on the CPU tells: findings with file and line, and memory requests counted for each source line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReportKind(StrEnum):
    """What a finding is about."""

    RACE = "race"
    OUT_OF_BOUNDS = "out_of_bounds"
    UNINITIALISED = "uninitialised"
    DIVERGENT_BARRIER = "divergent_barrier"
    DEADLOCK = "deadlock"
    MISALIGNED = "misaligned"
    SHUFFLE = "shuffle"
    MASK = "mask"
    CONST_WRITE = "const_write"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUTPUT = "output"
    ADDRESS = "address"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Report:
    """One finding.

    Attributes:
        kind: what it is about.
        file: name of the source; None where no line is known.
        line: in that file, from 1; None where no line is known.
        text: the finding in one sentence, with the threads and lines that take part.
        count: how often it was found at this place.
    """

    kind: ReportKind
    file: str | None
    line: int | None
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Memory requests of warps that one source line made; modelled from the same source in lockstep on the CPU.

    Attributes:
        file: name of the source.
        line: in that file, from 1.
        access: ``"load"``, ``"store"`` or ``"atomic"``.
        space: ``"global"`` or ``"shared"``.
        access_bytes: bytes of one lane's access.
        requests: how often a warp asked.
        lanes: sum over the requests of the lanes that took part.
        sectors: 32-byte sectors that they touched; None in shared memory.
        ideal_sectors: sectors if the same distinct words lay side by side; None in shared memory.
        bank_passes: passes over the banks; None in global memory.
    """

    file: str
    line: int
    access: str
    space: str
    access_bytes: int
    requests: int
    lanes: int
    sectors: int | None
    ideal_sectors: int | None
    bank_passes: int | None

    @property
    def lanes_per_request(self) -> float:
        """Active lanes of a request, at most 32."""
        return self.lanes / self.requests


@dataclass(frozen=True, slots=True)
class HostRun:
    """One launch on the CPU.

    Attributes:
        reports: what is wrong, in the order in which it was found; empty when nothing is.
        counts: by source line, in its order; empty unless the order was lockstep.
        completed: False when a finding ended the launch before its last block.
        printed: what the kernel printed.
    """

    reports: tuple[Report, ...]
    counts: tuple[LineCounts, ...]
    completed: bool
    printed: str = ""

    @property
    def clean(self) -> bool:
        """True when nothing is reported."""
        return not self.reports
