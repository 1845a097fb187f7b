"""Job: several strategies on one workload, as plain JSON, so that another process can run it; and how it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.batching.fields import whole_number
from labkit.batching.policy import BatchPolicy
from labkit.bench.record import Record
from labkit.errors import LabkitError, PolicyError
from labkit.experiments.execution import DEFAULT_SEQUENCES, Execution
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model, check_layout, model_spec
from labkit.units import counted


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """What is to be measured.

    Attributes:
        histogram: of the lengths.
        policies: one a strategy, in this order.
        model: key of the model table.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        execution: how each of them runs.
        sequences: most sequences that are made up; a larger histogram is sampled, with its longest in it.

    Raises:
        PolicyError: an unknown model, no strategy, or sequences below 1.
    """

    histogram: LengthHistogram
    policies: tuple[BatchPolicy, ...]
    model: Model = Model.DIN
    device: str = "cpu"
    execution: Execution = field(default_factory=Execution)
    sequences: int = DEFAULT_SEQUENCES

    def __post_init__(self) -> None:
        """Check what needs no data."""
        object.__setattr__(self, "model", model_spec(self.model).model)
        object.__setattr__(self, "sequences", whole_number("sequences", self.sequences))
        if not self.policies:
            raise PolicyError("there is no strategy to measure: give at least one policy.")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "histogram": {"values": self.histogram.values.tolist(), "counts": self.histogram.counts.tolist()},
            "policies": [policy.to_dict() for policy in self.policies],
            "model": str(self.model),
            "device": self.device,
            "execution": self.execution.to_dict(),
            "sequences": self.sequences,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Job:
        """The inverse of ``to_dict``."""
        return cls(
            LengthHistogram(data["histogram"]["values"], data["histogram"]["counts"]),
            tuple(BatchPolicy(**policy) for policy in data["policies"]),
            data["model"],
            data["device"],
            Execution.from_dict(data["execution"]),
            data["sequences"],
        )

    def without_first(self, done: int) -> Job | None:
        """The job that is left after so many strategies; None where none is."""
        return replace(self, policies=self.policies[done:]) if done < len(self.policies) else None

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for, beside the policies, as plain JSON types."""
        asked = {"model": str(self.model), "device": self.device, "sequences": self.sequences}
        return asked | self.execution.to_dict()

    @property
    def data_note(self) -> str:
        """What the events are, in a few words."""
        had = self.histogram.sequences
        events = "events made up: ids by Zipf's law, nothing to learn"
        if had <= self.sequences:
            return f"{counted(had, 'sequence')}, all of them; {events}"
        return f"{self.sequences:,} of {had:,} sequences, sampled with the longest among them; {events}"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a job is.

    Attributes:
        strategy: which one is being run.
        index: its number, from 0.
        of: strategies of the job.
        steps: timed steps so far; 0 while it is warming up.
        seconds: since its first timed step.
        total_s: asked for; None where a whole epoch is measured.
    """

    strategy: str
    index: int
    of: int
    steps: int
    seconds: float
    total_s: float | None


def run_job(job: Job, tell: Callable[[Progress | Record], object], every_s: float = 0.1) -> None:
    """Run a job here, in this process.

    A strategy that cannot run is a record with the reason; the others go on.

    Args:
        job: what is to be measured.
        tell: called with progress, and with a record a strategy.
        every_s: least time between two reports of progress.

    Raises:
        DeviceError: the device is not there.
    """
    # not at the top: who only talks to another process needs no torch
    from labkit.experiments.device_choice import open_device
    from labkit.experiments.measure import Workload, refused, run_policy

    device, execution = open_device(job.device), job.execution
    work = Workload.of(job.model, job.histogram, sequences=job.sequences, seed=execution.seed)
    total = None if execution.epoch else execution.seconds
    for index, policy in enumerate(job.policies):

        def report(steps: int, seconds: float, index: int = index, key: str = str(policy.strategy)) -> None:
            tell(Progress(key, index, len(job.policies), steps, seconds, total))

        report(0, 0.0)
        try:
            check_layout(job.model, policy.strategy)
            record = run_policy(work, policy, device, execution, _now_and_then(report, every_s))
        except LabkitError as error:
            record = refused(work, policy, device, " ".join(str(error).split()))
        tell(record)


def _now_and_then(report: Callable[[int, float], object], every_s: float) -> Callable[[int, float], None]:
    """Report the first step, and then no more often than every so many seconds."""
    last = -every_s

    def thinned(steps: int, seconds: float) -> None:
        nonlocal last
        if seconds - last >= every_s:
            last = seconds
            report(steps, seconds)

    return thinned
