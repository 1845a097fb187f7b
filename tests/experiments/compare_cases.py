"""Compared strategies made by hand, for what is computed from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.bench.record import Record
from labkit.cost.devices import gpu
from labkit.cost.step_time import Bound
from labkit.experiments.compare_rows import Compared, compared
from labkit.experiments.scores import Score
from labkit.experiments.what_if_model import OF_GPU, OF_MODEL, Modelled
from labkit.provenance import Figure, Origin

H100 = gpu("H100")
#: 10 events in 5 x 2 slots under buckets of 2: nothing is empty, nothing is lost.
LENGTHS = np.full(5, 2)


def modelled(bound: Bound | None = Bound.COMPUTE, share: float = 0.6, **values: float) -> Modelled:
    """Modelled figures; what is not given is 1. The bound rules ``share`` of the time."""
    units = OF_MODEL | OF_GPU
    figures = {name: Figure(values.get(name, 1.0), unit, Origin.MODELLED, "by hand") for name, unit in units.items()}
    return Modelled(figures, bound, "by hand", bound_share=None if bound is None else share)


def record(strategy: str = "bucket_budget", origin: Origin = Origin.MEASURED, **values: float) -> Record:
    """A record with these figures; an epoch of 2 s unless another is given."""
    found = {"epoch_s": 2.0, "events_per_s": 5.0, "padding_ratio": 0.0, **values}
    figures = {name: Figure(value, "1", origin) for name, value in found.items()}
    who: dict[str, Any] = {"policy": {}, "device": "cpu: hand", "model": "din", "environment": {"time": "then"}}
    return Record.failed("by hand", figures=figures, strategy=strategy, **who)


def row(strategy: Strategy = Strategy.BUCKET_BUDGET, **changes: Any) -> Compared:
    """A strategy without any symptom: full slots, compute-bound nowhere, nothing measured."""
    settings = {"bucket_edges": (2,)} if strategy.startswith("bucket") else {}
    policy = BatchPolicy(strategy, **settings)
    found = compared(Score(strategy, policy, None, None), LENGTHS, seed=0)
    audited = replace(found, error=None, audit=_audit(policy))
    return replace(audited, **changes)


def _audit(policy: BatchPolicy) -> Any:
    from labkit.batching.plan import plan_epoch

    return plan_epoch(LENGTHS, policy, seed=0).audit()


def with_audit(**changes: Any) -> Compared:
    """The same with other counts."""
    whole = row()
    assert whole.audit is not None
    return replace(whole, audit=replace(whole.audit, **changes))
