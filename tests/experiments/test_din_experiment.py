"""The DIN experiment: the three ways as described, beside what was published, and a finding from the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.cost.devices import gpu
from labkit.experiments.din_experiment import DinExperiment, din_experiment, din_policies
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.generate import power_law
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from tests.experiments.compare_cases import record

LENGTHS = np.minimum(power_law(4000, alpha=1.6, max_length=900, seed=1), 900)
HISTOGRAM = LengthHistogram.from_lengths(LENGTHS)
CHOICE = ModelChoice(Model.DIN, gpu("A100-40"))


def experiment(lengths: np.ndarray, records: dict[BatchPolicy, object] | None = None) -> DinExperiment:
    return din_experiment(LengthHistogram.from_lengths(lengths), lengths, CHOICE, 0, records)  # type: ignore[arg-type]


def test_the_three_ways_are_those_of_the_description() -> None:
    pad, five, ten = din_policies(HISTOGRAM).values()
    assert (pad.strategy, pad.rows, pad.max_length) == (Strategy.PAD_RECENT, 256, 512)
    assert (five.strategy, five.token_budget, five.max_length) == (Strategy.BUCKET_BUDGET, 256 * 512, 512)
    assert (ten.strategy, ten.token_budget, ten.max_length) == (Strategy.BUCKET_GRAPH, 256 * 512, 512)
    for policy, most in ((five, 5), (ten, 10)):
        assert policy.bucket_edges is not None
        assert policy.bucket_widths is not None
        assert 1 < len(policy.bucket_edges) <= most
        # quantile_p95: the last bucket is open up to the cap; at least one is padded to less than its edge
        assert policy.bucket_edges[-1] == 512
        assert any(width < edge for edge, width in zip(policy.bucket_edges, policy.bucket_widths, strict=True))


def test_the_published_figures_stand_beside_ours() -> None:
    found = experiment(LENGTHS)
    told = [(w.published.relative_time, w.published.utilization, w.published.memory_bytes) for w in found.ways]
    assert told == [(1.0, 0.58, 11.2e9), (0.58, 0.82, 6.4e9), (0.47, 0.91, 5.8e9)]
    relative = found.relative_model()
    assert relative[0] == 1.0
    assert all(time is not None and 0 < time < 1 for time in relative[1:])
    assert found.relative_measured() == [None, None, None]


def test_measured_times_are_relative_to_the_padded_way() -> None:
    times = dict(zip(din_policies(HISTOGRAM).values(), (8.0, 4.0, 2.0), strict=True))
    found = experiment(LENGTHS, {policy: record(epoch_s=time) for policy, time in times.items()})
    assert found.relative_measured() == [1.0, 0.5, 0.25]
    assert "0.50 and 0.25 measured (cpu: hand)" in found.finding


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        (LENGTHS, "tell of histories that fill 512 better"),
        (np.full(1000, 512), "tell of histories that are shorter against 512"),
        # half the rows 1, half 512: the padded way computes twice the slots that the buckets do
        (np.repeat([1, 512], 500), "about what the published ratios tell of"),
    ],
    ids=["power law", "full", "half empty"],
)
def test_the_finding_tells_how_the_slots_go_with_what_was_published(lengths: np.ndarray, told: str) -> None:
    found = experiment(lengths).finding
    assert told in found
    assert "Published, the bucketed ways take 0.58 and 0.47 of the padded time" in found


def test_the_price_of_the_p95_widths_is_told() -> None:
    # 20 buckets' worth of the same length cut nothing; the tail of the power law is cut
    assert "lose 0 % of all events" in experiment(np.full(1000, 512)).finding
    assert "lose 0 % of all events" not in experiment(LENGTHS).finding
