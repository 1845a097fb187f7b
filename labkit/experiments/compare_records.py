"""What a comparison measures: jobs in a child process, and the file that keeps their records with the lengths."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.batching.policy import BatchPolicy
from labkit.bench.record import Record
from labkit.errors import DataFileError, LabkitError
from labkit.experiments.measure_child import ChildRun
from labkit.experiments.measure_job import Job, Progress
from labkit.experiments.measure_report import MeasureReport
from labkit.files import reason_of, write_whole
from labkit.lengths.histogram import LengthHistogram

#: Called with progress, and with a record a strategy.
Tell = Callable[[Progress | Record], object]


def run_child(job: Job, tell: Tell) -> MeasureReport:
    """Run a job in a child process to its end; an interrupt ends the child.

    Raises:
        LabkitError: what the child refuses before the first strategy, such as a device that is not there.
    """
    run = ChildRun(job)
    try:
        for event in run:
            tell(event)
    finally:
        run.cancel()
    return MeasureReport.of(run.records, job.data_note, job.settings)


def by_policy(policies: Iterable[BatchPolicy], report: MeasureReport) -> dict[BatchPolicy, Record]:
    """The records of a report under the policies that they were made with; of another policy there is none."""
    made = [(record.policy, record) for record in report.strategies]
    return {policy: record for policy in policies for its, record in made if its == policy.to_dict()}


@dataclass(frozen=True, eq=False, slots=True)
class Stored:
    """The records of one run of the comparison, and what they were made on.

    Attributes:
        config: the parameters of the run, plain JSON types.
        histogram: the lengths that were measured, sampled already.
        compared: the strategies.
        din: the three ways of the DIN experiment; None where it was left out.
    """

    config: Mapping[str, Any]
    histogram: LengthHistogram
    compared: MeasureReport
    din: MeasureReport | None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write strict JSON: what ``labkit measure --out`` writes, and beside it what makes the comparison again."""
        lengths = {"values": self.histogram.values.tolist(), "counts": self.histogram.counts.tolist()}
        din = None if self.din is None else self.din.to_dict()
        more = {"din_experiment": din, "config": dict(self.config), "lengths": lengths}
        return write_whole(path, json.dumps(self.compared.to_dict() | more, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Stored:
        """Read what ``save`` wrote; its measured figures are ``recorded`` now, with device, date and commit.

        Raises:
            DataFileError: no such file, not JSON, or not written by this notebook.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataFileError(f"cannot read {os.fspath(path)!r}: {reason_of(error)}.") from None
        try:
            lengths = LengthHistogram(data["lengths"]["values"], data["lengths"]["counts"])
            config, din = dict(data["config"]), data["din_experiment"]
        except (KeyError, TypeError, LabkitError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataFileError(
                f"{os.fspath(path)!r} is no record of a comparison: {why}. Use the records.json that notebook "
                "03_compare wrote."
            ) from None
        compared = MeasureReport.from_dict(data).recorded()
        return cls(config, lengths, compared, None if din is None else MeasureReport.from_dict(din).recorded())
