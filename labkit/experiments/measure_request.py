"""What ``labkit measure`` is asked for, made into a job: the same settings as what-if, on the same lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.experiments.execution import DEFAULT_SEQUENCES, Execution
from labkit.experiments.measure_job import Job
from labkit.experiments.what_if_run import run
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model, check_layout, model_spec


def job_of(
    histogram: LengthHistogram,
    settings: Mapping[str, Any],
    *,
    model: Model | str = Model.DIN,
    strategies: Iterable[Strategy] | None = None,
    tuned: BatchPolicy | None = None,
    device: str = "cpu",
    execution: Execution | None = None,
    sequences: int = DEFAULT_SEQUENCES,
) -> Job:
    """The job of some settings.

    Args:
        histogram: of the lengths.
        settings: fields of ``Lineup`` that were given.
        model: key of the model table.
        strategies: those to measure; None: all, of which those that the model does not take say why.
        tuned: a policy whose settings take the place of the defaults.
        device: where.
        execution: how.
        sequences: most sequences that are made up.

    Raises:
        PolicyError, EdgesError: a setting that one of the strategies uses is wrong or does not fit the lengths; a
            strategy that was asked for and that the model does not take.
    """
    asked = tuple(Strategy) if strategies is None else tuple(dict.fromkeys(strategies))
    key = model_spec(model).model
    for strategy in asked if strategies is not None else ():
        check_layout(key, strategy)
    policies = tuple(scored.policy for scored in run(histogram, settings, asked, tuned).what_ifs)
    return Job(histogram, policies, key, device, execution or Execution(), sequences)
