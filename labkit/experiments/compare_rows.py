"""Compared: one strategy with all that is known of it: counted in its plan, modelled for a GPU, measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.audit import Audit
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.batching.what_if import WhatIf, what_if
from labkit.bench.record import Record
from labkit.errors import LabkitError
from labkit.experiments.scores import Score
from labkit.experiments.what_if_model import ModelChoice, Modelled, modelled
from labkit.lengths.histogram import LengthHistogram

NOT_MEASURED = "not measured: no device was asked for"


@dataclass(frozen=True, eq=False, slots=True)
class Compared:
    """One strategy.

    Attributes:
        strategy: its key.
        policy: its settings; None where the settings make no valid policy.
        what_if: its figures by formula; None with ``error``.
        audit: one epoch of it, planned and counted: exact; None with ``error``.
        modelled: what a model and a GPU add; None with ``error``.
        record: what was measured, or why nothing was; None where no device was asked for, or with ``error``.
        error: why it does not fit these lengths with these settings.
    """

    strategy: Strategy
    policy: BatchPolicy | None
    what_if: WhatIf | None
    audit: Audit | None
    modelled: Modelled | None
    record: Record | None
    error: str | None

    @property
    def model_refusal(self) -> str | None:
        """Why there are no modelled figures; None where there are."""
        if self.modelled is None:
            return self.error
        return None if self.modelled_time_s is not None else self.modelled.figures["time_s"].reason

    @property
    def measure_refusal(self) -> str | None:
        """Why there are no measured figures; None where there are."""
        if self.record is None:
            return self.error or NOT_MEASURED
        return None if self.record.ok else self.record.reason["epoch_s"]

    @property
    def fits(self) -> bool | None:
        """Whether the modelled peak is within the memory of the GPU; None where there is none."""
        return None if self.modelled is None else self.modelled.fits

    @property
    def modelled_time_s(self) -> float | None:
        """Seconds of an epoch on the GPU."""
        return None if self.modelled is None else self.modelled.figures["time_s"].value

    @property
    def measured_time_s(self) -> float | None:
        """Seconds of an epoch on the device."""
        return None if self.record is None else self.record.epoch_s


def compared(
    found: Score, lengths: NDArray[np.int64], seed: int, records: Mapping[BatchPolicy, Record] | None = None
) -> Compared:
    """Plan and count the epoch of a scored strategy, the same plan that is measured, and add what was measured.

    Args:
        found: the strategy, scored with a model.
        lengths: (N,) in the order in which they are measured.
        seed: of the plan.
        records: what was measured, by policy; None: nothing.
    """
    if found.policy is None or found.what_if is None:
        return Compared(found.strategy, found.policy, None, None, None, None, found.error)
    try:
        audit = plan_epoch(lengths, found.policy, seed=seed).audit()
    except LabkitError as error:
        return Compared(found.strategy, found.policy, None, None, None, None, str(error))
    record = None if records is None else records.get(found.policy)
    return Compared(found.strategy, found.policy, found.what_if, audit, found.modelled, record, None)


def scored_policy(policy: BatchPolicy, histogram: LengthHistogram, choice: ModelChoice) -> Score:
    """A policy of no lineup, scored and modelled; where it does not fit, with the reason."""
    try:
        found = what_if(histogram, policy)
    except LabkitError as error:
        return Score(policy.strategy, policy, None, str(error))
    return Score(policy.strategy, policy, found, None, modelled(found, histogram, choice))


def fastest_first(rows: Sequence[Compared]) -> tuple[Compared, ...]:
    """By modelled time, then by measured time where there is no modelled one; those without any time last.

    What does not fit the GPU comes after what fits.
    """
    unknown = float("inf")

    def key(row: Compared) -> tuple[bool, bool, float, float]:
        model, measured = row.modelled_time_s, row.measured_time_s
        return (
            model is None,
            row.fits is False,
            unknown if model is None else model,
            unknown if measured is None else measured,
        )

    return tuple(sorted(rows, key=key))
