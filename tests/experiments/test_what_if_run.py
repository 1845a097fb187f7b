"""Settings on top of a tuned policy, and what is refused as a contradiction."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.batching.what_if import what_if
from labkit.errors import EdgesError
from labkit.experiments.lineup import EdgesBy, Lineup
from labkit.experiments.what_if_report import report, strategy_record
from labkit.experiments.what_if_run import lineup_of, run
from labkit.lengths.histogram import LengthHistogram

HISTOGRAM = LengthHistogram.from_lengths([1, 1, 2, 5, 9, 9, 30])


def test_without_settings_the_lineup_is_the_default() -> None:
    assert lineup_of({}) == lineup_of({"rows": None, "buckets": None}) == Lineup()


def test_quantiles_alone_mean_quantile_edges() -> None:
    assert lineup_of({"quantiles": (0.5, 1.0)}).edges_by is EdgesBy.QUANTILE
    assert lineup_of({"quantiles": (0.5,), "edges_by": EdgesBy.QUANTILE_P95}).edges_by is EdgesBy.QUANTILE_P95


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"bucket_edges": (3,), "buckets": 2}, "--edges contradicts --buckets:"),
        ({"bucket_edges": (3,), "edges_by": EdgesBy.QUANTILE}, "--edges contradicts --edges-by:"),
        ({"quantiles": (0.5,), "buckets": 2}, "--quantiles contradicts --buckets:"),
        ({"quantiles": (0.5,), "edges_by": EdgesBy.OPTIMAL}, "--quantiles contradicts --edges-by:"),
    ],
)
def test_two_ways_to_the_edges_contradict_each_other(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(EdgesError, match=f"^{named} both decide on the bucket edges. Leave one out"):
        lineup_of(settings)


def test_a_tuned_policy_gives_only_the_settings_that_its_strategy_uses() -> None:
    tuned = BatchPolicy("pad_batch", rows=8, max_length=20, token_budget=3)
    assert lineup_of({}, tuned) == Lineup(rows=8, max_length=20)
    assert lineup_of({"rows": 4}, tuned) == Lineup(rows=4, max_length=20)


def test_given_ways_to_the_edges_drop_the_tuned_edges_and_widths() -> None:
    tuned = BatchPolicy("bucket_rows", bucket_edges=(5, 30), bucket_widths=(4, 30), pad_to="batch_max")
    assert lineup_of({}, tuned).bucket_widths == (4, 30)
    for settings in ({"buckets": 3}, {"edges_by": EdgesBy.QUANTILE}, {"quantiles": (1.0,)}):
        lineup = lineup_of(settings, tuned)
        assert (lineup.bucket_edges, lineup.bucket_widths, lineup.pad_to) == (None, None, "batch_max")
    assert lineup_of({"bucket_edges": (30,)}, tuned).bucket_widths is None


@pytest.mark.parametrize("strategy", list(Strategy), ids=str)
def test_the_tuned_strategy_is_scored_exactly_as_tuned(strategy: Strategy) -> None:
    static = strategy is Strategy.BUCKET_GRAPH
    tuned = BatchPolicy(
        strategy,
        rows=2,
        bucket_edges=(2, 9, 30) if strategy.startswith("bucket") else None,
        token_budget=40,
        length_multiple=4,
        row_multiple=2,
        static_shapes=True if static else None,
        batch_order="grouped",
        shuffle=False,
        drop_last=not static,
    )
    found = {w.policy.strategy: w for w in run(HISTOGRAM, {}, tuple(Strategy), tuned).what_ifs}
    used = {name: getattr(tuned, name) for name in tuned.spec.fields}
    assert {name: getattr(found[strategy].policy, name) for name in used} == used
    expected = what_if(HISTOGRAM, tuned)
    assert (found[strategy].batches, found[strategy].slots) == (expected.batches, expected.slots)


def test_edges_are_computed_only_where_a_strategy_has_buckets() -> None:
    scored = run(HISTOGRAM, {"buckets": 0}, [Strategy.PAD_MAX, Strategy.JAGGED])
    assert scored.edges is None
    assert report(HISTOGRAM, scored.what_ifs)["bucket_edges"] is None


def test_a_record_says_why_its_nulls_are_null() -> None:
    record = strategy_record(what_if(HISTOGRAM, BatchPolicy("pad_max", rows=4)))
    assert record["strategy"] == "pad_max"
    assert record["policy"]["bucket_edges"] is None
    # 7 rows of 30 slots hold 57 events
    assert (record["slots"], record["kept_events"], record["padding_ratio"]) == (210, 57, 1 - 57 / 210)
    assert record["reason"]["time_s"] == "needs a model: lengths and a policy do not tell it"
    assert record["reason"]["packs"] == "does not apply: this strategy packs no sequences together"
    assert record["provenance"]["slots"] == "exact"
