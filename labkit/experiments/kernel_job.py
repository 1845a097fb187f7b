"""A job on the sources of an op: prove them, count what they ask of memory, or both; as JSON on the way to a child."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.experiments.kernel_counts import KernelCounts, count_kernel
from labkit.experiments.kernel_sources import sources_on_disk
from labkit.gpu.host.reports import LineCounts
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.nvrtc import ARCHES
from labkit.gpu.resources import Resources
from labkit.gpu.verify.proof import Finding, Proof
from labkit.gpu.verify.prove import prove, stage_count

#: Told how far it is: name of the stage that has ended, stages done, stages in all.
Told = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class KernelJob:
    """What is asked.

    Attributes:
        op: key in the catalog.
        sources: file to text; the first is the .cu file.
        lengths: of the rows that are counted; empty: nothing is counted.
        dim: D of the counts.
        thresholds: of the regimes, for the counts.
        longest: of ``LaunchConfig``.
        proof: the sources are proved.
        timeout_s: of each launch on the CPU.
    """

    op: str
    sources: Mapping[str, str]
    lengths: tuple[int, ...] = ()
    dim: int = 64
    thresholds: tuple[int, int, int] = (32, 128, 2048)
    longest: int | None = None
    proof: bool = True
    timeout_s: float = 20.0

    @property
    def as_json(self) -> dict[str, Any]:
        """Field names to values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"sources": dict(self.sources)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KernelJob:
        """The inverse of ``as_json``."""
        return cls(**{**data, "lengths": tuple(data["lengths"]), "thresholds": tuple(data["thresholds"])})

    @property
    def stages(self) -> int:
        """Stages, if nothing is wrong."""
        return (stage_count(ARCHES) if self.proof else 0) + bool(self.lengths)


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """What was found; a part that was not asked for is None.

    Attributes:
        job: what was asked.
        proof: of the sources.
        counts: on the lengths.
    """

    job: KernelJob
    proof: Proof | None
    counts: KernelCounts | None

    @property
    def reports(self) -> tuple[Finding, ...]:
        """What is wrong: of the proof, else of the counts."""
        if self.proof is not None:
            return self.proof.reports
        return () if self.counts is None else self.counts.reports


def run_job(job: KernelJob, told: Told = lambda *_: None) -> KernelAnswer:
    """Prove, then count; where the proof finds that nothing compiles there is nothing to count.

    Raises:
        KernelLaunchError: no such op; MissingPackageError: no g++ here; DataFileError: a header is missing;
        KernelCompileError: g++ refuses a source that is counted without a proof.

    Cost: that of ``prove`` and ``count_kernel``: some 20 s and some seconds.
    """
    done = 0

    def ended(stage: str) -> None:
        nonlocal done
        done += 1
        told(stage, done, job.stages)

    proof = counts = None
    if job.proof:
        with sources_on_disk(job.op, job.sources) as path:
            proof = prove(job.op, path, timeout_s=job.timeout_s, told=ended)
    if job.lengths and not (proof is not None and _does_not_run(proof)):
        config = LaunchConfig(*job.thresholds, longest=job.longest)
        lengths = np.array(job.lengths, dtype=np.int64)
        counts = count_kernel(job.op, job.sources, lengths, job.dim, config, timeout_s=job.timeout_s)
        ended("counts on your lengths")
    return KernelAnswer(job, proof, counts)


def _does_not_run(proof: Proof) -> bool:
    return any(report.kind in ("compile", "launch") for report in proof.reports)


def proof_from_json(data: Mapping[str, Any]) -> Proof:
    """The inverse of ``Proof.as_json``."""
    lines = [{name: line[name] for name in LineCounts.__slots__} for line in data["counts"]]
    return Proof(
        op=data["op"],
        file=data["file"],
        kernels=tuple(data["kernels"]),
        equal=data["equal"],
        reports=tuple(Finding(**found) for found in data["reports"]),
        counts=tuple(LineCounts(**line) for line in lines),
        resources={
            arch: {kernel: Resources(**taken) for kernel, taken in kernels.items()}
            for arch, kernels in data["resources"].items()
        },
        trials=data["trials"],
        not_proved=tuple(data["not_proved"]),
        executed=tuple(data["executed"]),
    )
