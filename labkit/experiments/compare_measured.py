"""What notebook 03 measures: its strategies and the three ways of the DIN experiment, in a process of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from labkit.batching.policy import BatchPolicy
from labkit.experiments.compare_config import Config
from labkit.experiments.compare_records import Stored, Tell, by_policy, run_child
from labkit.experiments.din_experiment import din_policies
from labkit.experiments.execution import Execution
from labkit.experiments.measure_job import Job
from labkit.experiments.measure_report import MeasureReport
from labkit.experiments.scores import score
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model


def measured(config: Config, histogram: LengthHistogram, tell: Tell) -> Stored | None:
    """Run the strategies and the three ways of DIN in a child; a policy of both is run once.

    Args:
        config: device, model, seconds and strategies.
        histogram: the lengths.
        tell: called with progress and records.

    Returns:
        The records; None where no strategy fits these lengths.

    Raises:
        LabkitError: a device that is not there.
    """
    board = score(histogram, config.lineup, config.chosen())
    own = [s.policy for s in board.scores if s.policy is not None and s.what_if is not None]
    ways = list(din_policies(histogram).values()) if config.din else []
    if not own:
        return None
    if config.model is Model.DIN or not ways:
        both = _child(config, config.model, [*own, *ways], histogram, tell)
        din = _part(both, ways) if ways else None
        return Stored(config.to_dict(), histogram, _part(both, own), din)
    compared_now = _child(config, config.model, own, histogram, tell)
    return Stored(config.to_dict(), histogram, compared_now, _child(config, Model.DIN, ways, histogram, tell))


def _child(
    config: Config, model: Model, policies: Iterable[BatchPolicy], histogram: LengthHistogram, tell: Tell
) -> MeasureReport:
    execution = Execution(seconds=config.seconds, seed=config.seed)
    once = tuple(dict.fromkeys(policies))
    return run_child(Job(histogram, once, model, str(config.device), execution, histogram.sequences), tell)


def _part(report: MeasureReport, policies: list[BatchPolicy]) -> MeasureReport:
    """The records of some of the policies."""
    found = by_policy(policies, report)
    return replace(report, strategies=tuple(found[policy] for policy in policies))
