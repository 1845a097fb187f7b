"""Notebook 04: a kernel proved, counted and timed on the lengths at hand, with or without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labkit.batching.fields import whole_number
from labkit.cost.devices import gpu
from labkit.errors import MissingPackageError
from labkit.experiments import tune_buckets
from labkit.experiments.kernel_counts import ROWS, THREAD_PER_SEQUENCE, counts_as_json
from labkit.experiments.kernel_job import KernelAnswer, KernelJob, run_job
from labkit.experiments.kernel_sources import kernel_source, opened_sources, shipped_sources
from labkit.experiments.kernel_time import KernelTime, time_kernel
from labkit.experiments.kernel_workload import Workload, sampled_rows
from labkit.experiments.regime_shares import RegimeShare, regime_shares
from labkit.gpu.launch_config import LaunchConfig
from labkit.lengths.histogram import LengthHistogram

_WIDEST = 512  # features that the kernels take


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that notebook 04 can be asked for; its parameters cell, one to one.

    Attributes:
        op: key in the catalog of kernels.
        source_file: path of a changed source of that op; None: the shipped one.
        preset: name of a data set, or ``generated``.
        lengths_file: path of a file of lengths or events, which wins over the preset; None: no file.
        user_column: column that names the user, where the file is an event table.
        alpha: exponent of the generated power law, > 1.
        sequences: generated sequences.
        longest: longest generated length.
        dim: features of an event, D.
        counted_rows: sampled sequences whose memory requests are counted.
        timed_rows: sampled sequences of the batch that is timed, and whose bytes set the floor.
        gpu: whose bandwidth sets the floor.
    """

    op: str = "segment_pool"
    source_file: str | None = None
    preset: str = "ml-100k"
    lengths_file: str | None = None
    user_column: str | None = None
    alpha: float = 1.5
    sequences: int = 100_000
    longest: int = 4096
    dim: int = 64
    counted_rows: int = ROWS
    timed_rows: int = 20_000
    gpu: str = "H100"

    def __post_init__(self) -> None:
        """Refuse what could not be right, before anything is read.

        Raises:
            KernelLaunchError: no such op, and the message lists them; GpuError: no such GPU; PolicyError, LengthsError:
            a value out of its range; DataFileError: a preset that does not exist.
        """
        kernel_source(self.op)
        gpu(self.gpu)
        whole_number("dim", self.dim, most=_WIDEST)
        whole_number("counted_rows", self.counted_rows, most=100_000)
        whole_number("timed_rows", self.timed_rows, most=2**24)
        _ = self.lengths  # which refuses what is out of its range

    def check_files(self) -> None:
        """Look whether the files that are named are there.

        Raises:
            DataFileError: one is not, or the system does not let us look.
        """
        self.lengths.check_files()
        if self.source_file is not None:
            opened_sources(self.op, self.source_file)

    @property
    def lengths(self) -> tune_buckets.Config:
        """What says which lengths, as notebook 01 has it."""
        names = ("preset", "lengths_file", "user_column", "alpha", "sequences", "longest")
        return tune_buckets.Config(**{name: getattr(self, name) for name in names})

    def histogram(self) -> LengthHistogram:
        """The lengths, counted.

        Raises:
            LabkitError: they cannot be read.
        """
        return tune_buckets.load(self.lengths)

    def source_texts(self) -> dict[str, str]:
        """File to text of what is looked at.

        Raises:
            DataFileError: a file is missing.
        """
        return shipped_sources(self.op) if self.source_file is None else opened_sources(self.op, self.source_file)


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """What was found.

    Attributes:
        config: what was asked.
        histogram: the lengths.
        launch: thresholds of the regimes for them.
        regimes: what each regime takes of them.
        sources: file to text of what was looked at.
        answer: proof and counts; None with ``problem``.
        problem: what is missing on this machine, with the line that installs it; None where nothing is.
        time: of the shipped kernels on a batch of these lengths.
    """

    config: Config
    histogram: LengthHistogram
    launch: LaunchConfig
    regimes: tuple[RegimeShare, ...]
    sources: Mapping[str, str]
    answer: KernelAnswer | None
    problem: str | None
    time: KernelTime

    @property
    def as_json(self) -> dict[str, Any]:
        """The proof, the counts, the regimes and the time, each with where its numbers come from."""
        answer = self.answer
        return {
            "op": self.config.op,
            "problem": self.problem,
            "proof": None if answer is None or answer.proof is None else answer.proof.as_json,
            "counts": None if answer is None or answer.counts is None else counts_as_json(answer.counts),
            "regimes": {
                "provenance": "exact",
                "thresholds": list(self.launch.thresholds),
                "shares": [
                    {name: getattr(share, name) for name in share.__slots__} | {"regime": str(share.regime)}
                    for share in self.regimes
                ],
            },
            "time": self.time.as_json,
        }

    @property
    def finding(self) -> str:
        """One or two sentences from the numbers."""
        if self.answer is None or self.answer.proof is None:
            return f"{self.config.op} was not proved: {self.problem}"
        proof, counts = self.answer.proof, self.answer.counts
        said = "is proved" if proof.ok else f"is NOT proved ({len(proof.reports)} reports)"
        text = f"{proof.file} as {self.config.op} {said} on {proof.trials} inputs."
        thread = None if counts is None else counts.part(THREAD_PER_SEQUENCE)
        if counts is None or thread is None or not thread.lanes_per_request or not counts.whole.lanes_per_request:
            return text
        ours = counts.whole.lanes_per_request
        return (
            f"{text} A memory request has {ours:.1f} of 32 lanes active, that of a thread a sequence "
            f"{thread.lanes_per_request:.1f}: {ours / thread.lanes_per_request:.1f} times better (modelled)."
        )


def run(config: Config) -> Result:
    """Find the regimes, prove the source, count its requests, time it.

    A missing compiler is the result's ``problem``, and what does not need one is there all the same.

    Raises:
        LabkitError: data or a source that cannot be read.

    Cost: about 25 s on two cores, most of it the proof.
    """
    histogram = config.histogram()
    launch = launch_config(histogram, config.dim, config.counted_rows)
    sources = config.source_texts()
    answer, problem = None, None
    try:
        answer = run_job(kernel_job(config, histogram, sources))
    except MissingPackageError as error:
        problem = str(error)
    batch = sampled_rows(histogram.values, histogram.counts, config.timed_rows)
    timed = Workload(config.op, batch, config.dim, launch_config(histogram, config.dim, config.timed_rows))
    return Result(
        config=config,
        histogram=histogram,
        launch=launch,
        regimes=regime_shares(histogram, launch.thresholds),
        sources=sources,
        answer=answer,
        problem=problem,
        time=time_kernel(timed, gpu(config.gpu)),
    )


def launch_config(histogram: LengthHistogram, dim: int, rows: int) -> LaunchConfig:
    """The thresholds for a batch of so many rows of these lengths."""
    events = max(1, round(rows * histogram.events / histogram.sequences))
    return LaunchConfig.for_histogram(histogram, dim, events=events)


def kernel_job(
    config: Config, histogram: LengthHistogram, sources: Mapping[str, str], *, proof: bool = True
) -> KernelJob:
    """The job on these sources and lengths."""
    launch = launch_config(histogram, config.dim, config.counted_rows)
    lengths = sampled_rows(histogram.values, histogram.counts, config.counted_rows)
    return KernelJob(
        op=config.op,
        sources=dict(sources),
        lengths=tuple(int(length) for length in lengths),
        dim=config.dim,
        thresholds=launch.thresholds,
        longest=launch.longest,
        proof=proof,
    )
