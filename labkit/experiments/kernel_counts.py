"""Memory requests of a kernel by source line, regime by regime, on rows of the lengths at hand: modelled, no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.experiments.kernel_sources import sources_on_disk
from labkit.experiments.kernel_workload import SEGMENTED, Workload
from labkit.gpu.catalog import kernel_folder
from labkit.gpu.host.build import build
from labkit.gpu.host.program import Order
from labkit.gpu.host.reports import HostRun, LineCounts
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.launch import launching_by
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.regimes import BLOCK, Regime, regime_of
from labkit.gpu.sources import kernel_text
from labkit.gpu.verify.findings import Findings, summed
from labkit.gpu.verify.programs import Programs
from labkit.gpu.verify.proof import Finding
from labkit.gpu.verify.stand_in import CpuDevice, LaunchEnded, poisoned_allocations

#: Rows of each count: enough for every regime of a power law, few enough for seconds.
ROWS = 192
_MOST_FEATURES = 4_000_000  # events times D of a count; longer rows are counted with fewer of them

THREAD_PER_SEQUENCE = "thread_per_sequence"

#: Bytes that the banks of shared memory deliver in one pass. Source: CUDA C++ Programming Guide, "Shared Memory".
_PASS_BYTES = 128


def least_passes(line: LineCounts) -> float:
    """Passes over the banks that the bytes of a line's requests need: one a request, more where lanes take more."""
    return max(line.requests, line.lanes * line.access_bytes / _PASS_BYTES)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the rows of one kind cost; all of it modelled.

    Attributes:
        name: a ``Regime``, ``"all rows"``, or ``"thread_per_sequence"``.
        rows: of this kind.
        events: in them.
        counts: by source line.
    """

    name: str
    rows: int
    events: int
    counts: tuple[LineCounts, ...]

    @property
    def requests(self) -> int:
        """Of warps, to global memory."""
        return sum(c.requests for c in self._of_global)

    @property
    def lanes_per_request(self) -> float | None:
        """Active lanes, at most 32; None without a request."""
        return sum(c.lanes for c in self._of_global) / self.requests if self.requests else None

    @property
    def sectors_per_ideal(self) -> float | None:
        """32-byte sectors touched, over those of the same words side by side; None without a request."""
        ideal = sum(c.ideal_sectors or 0 for c in self._of_global)
        return sum(c.sectors or 0 for c in self._of_global) / ideal if ideal else None

    @property
    def passes_per_least(self) -> float | None:
        """Passes over the banks of shared memory, over the least that the bytes need; None where it is not used."""
        shared = [c for c in self.counts if c.bank_passes is not None]
        least = sum(least_passes(c) for c in shared)
        return sum(c.bank_passes or 0 for c in shared) / least if least else None

    @property
    def _of_global(self) -> list[LineCounts]:
        return [c for c in self.counts if c.space == "global"]


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """Counts of one source.

    Attributes:
        parts: rows of each regime by themselves, then all rows, then a thread a sequence. Ops without regimes have
            all rows alone.
        reports: what was wrong while it was counted; then the counts are of what ran until then.
    """

    parts: tuple[Counted, ...]
    reports: tuple[Finding, ...]

    def part(self, name: str) -> Counted | None:
        """The part of a name; None where there are no such rows."""
        return next((part for part in self.parts if part.name == name), None)

    @property
    def whole(self) -> Counted:
        """All rows."""
        return next(part for part in self.parts if part.name == "all rows")


def count_kernel(
    op: str,
    sources: Mapping[str, str],
    lengths: NDArray[np.int64],
    dim: int,
    config: LaunchConfig,
    *,
    timeout_s: float = 20.0,
    cache: Path | None = None,
) -> KernelCounts:
    """Run an op on rows of these lengths in lockstep, and count what its warps ask of memory.

    Args:
        op: key in the catalog.
        sources: file to text, as ``shipped_sources``.
        lengths: (B,) of the rows; a sample, see ``sampled_rows``.
        dim: D.
        config: thresholds of the regimes.
        timeout_s: of each launch.
        cache: folder of finished programs; None: the usual one.

    Raises:
        KernelCompileError: g++ refuses the source.
        MissingPackageError: no g++ here.

    Cost: some seconds for 192 rows of a power law, D = 64.
    """
    lengths = affordable(lengths, dim)
    kinds = {"all rows": lengths}
    if op in SEGMENTED:
        regimes = np.array([regime_of(int(length), config.thresholds) for length in lengths])
        own = {str(regime): lengths[regimes == regime] for regime in Regime}
        kinds = {name: rows for name, rows in own.items() if len(rows)} | kinds
    findings = Findings()
    with sources_on_disk(op, sources) as path, poisoned_allocations():
        programs, text = Programs(op, path, None, cache), kernel_text(path)
        parts = []
        for name, rows in kinds.items():
            device = CpuDevice(
                lambda _, expression: programs.of(Mode.CHECKED, expression),
                Order.LOCKSTEP,
                timeout_s=timeout_s,
                sources={op: text},
            )
            runs = _launched(device, Workload(op, rows, dim, config))
            for run in runs:
                findings.add_reports(run.reports)
            parts.append(_counted(name, rows, runs))
    if op in SEGMENTED:
        parts.append(_by_thread(lengths, timeout_s, cache))
    return KernelCounts(tuple(parts), findings.all)


def affordable(lengths: NDArray[np.int64], dim: int) -> NDArray[np.int64]:
    """Every k-th of the rows by length, so many that their events times D stay within what is counted in seconds."""
    step = max(1, -(-int(lengths.sum()) * dim // _MOST_FEATURES))
    kept = np.sort(lengths)[step // 2 :: step]
    return np.random.default_rng(12).permutation(kept) if step > 1 and len(kept) else lengths


def _launched(device: CpuDevice, workload: Workload) -> list[HostRun]:
    try:
        with launching_by(device.launch):
            workload.prepared()()
    except LaunchEnded:
        pass  # its reports say why
    return [run for _, run in device.launched]


def _counted(name: str, rows: NDArray[np.int64], runs: Iterable[HostRun]) -> Counted:
    return Counted(name, len(rows), int(rows.sum()), summed(counts for run in runs for counts in run.counts))


def _by_thread(lengths: NDArray[np.int64], timeout_s: float, cache: Path | None) -> Counted:
    path = kernel_folder() / "compared" / f"{THREAD_PER_SEQUENCE}.cu"
    program = build(path, [THREAD_PER_SEQUENCE], mode=Mode.CHECKED, cache=cache)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    out, values = np.zeros(len(lengths), np.float32), np.ones(int(offsets[-1]), np.float32)
    arguments = (out, values, offsets, np.int32(len(lengths)))
    grid = (max(1, -(-len(lengths) // BLOCK)),)
    run = program.launch(THREAD_PER_SEQUENCE, grid, (BLOCK,), arguments, order=Order.LOCKSTEP, timeout_s=timeout_s)
    return _counted(THREAD_PER_SEQUENCE, lengths, [run])


def counts_as_json(counts: KernelCounts) -> dict[str, Any]:
    """Everything, with the figures of each part beside its lines."""
    return {
        "provenance": "modelled",
        "reports": [finding.as_json for finding in counts.reports],
        "parts": [
            {
                "name": part.name,
                "rows": part.rows,
                "events": part.events,
                "requests": part.requests,
                "lanes_per_request": part.lanes_per_request,
                "sectors_per_ideal": part.sectors_per_ideal,
                "passes_per_least": part.passes_per_least,
                "lines": [{name: getattr(line, name) for name in LineCounts.__slots__} for line in part.counts],
            }
            for part in counts.parts
        ],
    }


def counts_from_json(data: Mapping[str, Any]) -> KernelCounts:
    """The inverse of ``counts_as_json``."""
    parts = tuple(
        Counted(p["name"], p["rows"], p["events"], tuple(LineCounts(**line) for line in p["lines"]))
        for p in data["parts"]
    )
    return KernelCounts(parts, tuple(Finding(**found) for found in data["reports"]))
