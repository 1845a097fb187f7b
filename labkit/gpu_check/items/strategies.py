"""DIN forward and backward under every strategy: real events a second, peak memory, kernels, gauges meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import STRATEGIES, Strategy
from labkit.experiments.execution import Execution
from labkit.experiments.lineup import Lineup, policies
from labkit.experiments.measure import Workload, run_policy
from labkit.gpu_check.lab import Lab, Sizes
from labkit.gpu_check.ragged_data import Law, drawn_lengths
from labkit.gpu_check.runner import Case, Found
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import MODELS, Model

KEY = "strategies"

MODEL = Model.DIN


def cases(lab: Lab) -> Sequence[Case]:
    """A strategy each, all on the same data and weights."""
    chosen = policies_of(lab.sizes)
    return [Case(str(policy.strategy), partial(_run, lab, policy)) for policy in chosen]


@cache
def workload(sizes: Sizes) -> Workload:
    """DIN with its default sizes, and made-up events of Zipf lengths."""
    return Workload.of(MODEL, drawn_lengths(Law.ZIPF, sizes.sequences, sizes.longest))


def policies_of(sizes: Sizes) -> tuple[BatchPolicy, ...]:
    """Every strategy that DIN takes, with one budget; the ones that are asked about most come first."""
    first = (Strategy.SEGMENTED, Strategy.JAGGED, Strategy.BUCKET_GRAPH, Strategy.BUCKET_BUDGET, Strategy.PAD_BATCH)
    taken = [s for s in Strategy if STRATEGIES[s].layout in MODELS[MODEL].takes]
    lineup = Lineup(rows=sizes.batch_rows, token_budget=sizes.token_budget)
    return policies(histogram_of(sizes), lineup, sorted(taken, key=lambda s: first.index(s) if s in first else 99))


def histogram_of(sizes: Sizes) -> LengthHistogram:
    """The lengths of the data set."""
    return LengthHistogram.from_lengths(workload(sizes).data.lengths)


def _run(lab: Lab, policy: BatchPolicy) -> Found:
    seconds = lab.sizes.strategy_s
    how = Execution(seconds=seconds, warm_up=3) if math.isfinite(seconds) else Execution(epoch=True, warm_up=3)
    record = run_policy(workload(lab.sizes), policy, lab.device, how)
    found = record.to_dict()
    if not record.ok:
        return found | {"ok": None, "reason": record.reason["epoch_s"]}
    rate, step = found["events_per_s"], found["median_s"]
    return found | {"shown": f"{rate / 1e6:.2f} million real events/s, {step * 1e3:.3f} ms a step"}
