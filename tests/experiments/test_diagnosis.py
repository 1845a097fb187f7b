"""Each symptom is triggered by its own number, and by none just beside its threshold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labkit.batching.strategies import Strategy
from labkit.cost.step_time import Bound
from labkit.experiments.compare_rows import Compared
from labkit.experiments.diagnosis import diagnose
from labkit.experiments.symptoms import SYMPTOMS
from labkit.provenance import Origin
from tests.experiments.compare_cases import H100, modelled, record, row, with_audit


def names(*rows: Compared) -> list[str]:
    return [finding.symptom.name for finding in diagnose(rows, H100)]


def bound_to(bound: Bound, busy: float = 0.9, share: float = 0.6) -> Compared:
    return row(modelled=modelled(bound, share, utilization=busy, launches=600.0, time_s=2.0))


def measured(**values: float) -> Compared:
    return row(record=record(**values))


CASES: list[tuple[str, Callable[[], Compared], Callable[[], Compared], str]] = [
    # symptom, a row that shows it, its neighbour that does not, what it says
    (
        "much padding",
        lambda: with_audit(padding_ratio=0.31),
        lambda: with_audit(padding_ratio=0.3),
        "padding 31.0 %",
    ),
    # 1 of 50 events, and 1 of 100
    (
        "lost events",
        lambda: with_audit(events=50, events_lost=1),
        lambda: with_audit(events=100, events_lost=1),
        "events lost 2.0 %, users cut 0 %",
    ),
    (
        "batches over budget",
        lambda: with_audit(batches_over_budget=1),
        lambda: with_audit(batches_over_budget=0),
        "1 batches over budget",
    ),
    (
        "launch-bound (modelled)",
        lambda: bound_to(Bound.LAUNCH),
        lambda: row(),
        "launch in most of 2.00 s, busy 90.0 %, 300 launches/s",
    ),
    (
        "idle GPU (measured)",
        lambda: measured(host_gap_share=0.51),
        lambda: measured(host_gap_share=0.5),
        "no kernel runs 51.0 % of the time",
    ),
    (
        "bandwidth-bound (modelled)",
        lambda: bound_to(Bound.BANDWIDTH),
        lambda: row(),
        "bandwidth in most of 2.00 s",
    ),
    (
        "compute-bound (modelled)",
        lambda: bound_to(Bound.COMPUTE),
        lambda: row(),
        "compute in most of 2.00 s",
    ),
    (
        "does not fit",
        lambda: row(modelled=modelled(None, peak_bytes=80e9 + 1)),
        lambda: row(modelled=modelled(None, peak_bytes=80e9)),
        "80.00 GB on a H100 of 80.00 GB",
    ),
    (
        "slow loader",
        lambda: measured(loader_wait_share=0.11),
        lambda: measured(loader_wait_share=0.1),
        "wait 11.0 %",
    ),
    (
        "fragmented memory",
        lambda: measured(fragmentation=0.31),
        lambda: measured(fragmentation=0.3),
        "fragmentation 31.0 %",
    ),
    ("recompiles", lambda: measured(recompiles=2), lambda: measured(recompiles=0), "recompiles 2"),
    ("graph fallbacks", lambda: measured(graph_fallbacks=3), lambda: measured(graph_fallbacks=0), "fallbacks 3"),
    (
        "clocks held down",
        lambda: measured(throttled_share=0.11),
        lambda: measured(throttled_share=0.1),
        "throttled 11.0 %",
    ),
]


def test_every_symptom_of_the_table_has_a_case() -> None:
    assert [case[0] for case in CASES] == [symptom.name for symptom in SYMPTOMS]


def test_a_healthy_strategy_has_no_symptom() -> None:
    assert names(row(), row(record=record())) == []


@pytest.mark.parametrize(("symptom", "sick", "healthy", "text"), CASES, ids=[case[0] for case in CASES])
def test_a_symptom_is_told_by_its_number_and_not_by_its_neighbour(
    symptom: str, sick: Callable[[], Compared], healthy: Callable[[], Compared], text: str
) -> None:
    assert names(healthy()) == []
    (finding,) = diagnose([sick(), healthy()], H100)
    assert finding.symptom.name == symptom
    ((strategy, sign),) = finding.signs
    assert (strategy, sign.text) == (Strategy.BUCKET_BUDGET, text)


@pytest.mark.parametrize("bound", list(Bound))
def test_most_is_said_of_more_than_half(bound: Bound) -> None:
    ((_, most),), ((_, half),) = (diagnose([bound_to(bound, share=share)], H100)[0].signs for share in (0.51, 0.5))
    assert most.text.startswith(f"{bound} in most of 2.00 s")
    assert half.text.startswith(f"{bound} in the largest part of 2.00 s (50.0 %)")


@pytest.mark.parametrize("busy", [0.1, 0.9])
def test_a_launch_bound_strategy_is_told_of_however_busy_the_device_is(busy: float) -> None:
    assert names(bound_to(Bound.LAUNCH, busy)) == ["launch-bound (modelled)"]


def test_the_number_keeps_its_origin() -> None:
    (exact,) = diagnose([with_audit(padding_ratio=0.9)], None)
    (stored,) = diagnose([row(record=record(origin=Origin.RECORDED, loader_wait_share=0.5))], None)
    (model,) = diagnose([bound_to(Bound.BANDWIDTH)], H100)
    assert [f.signs[0][1].figure.origin for f in (exact, stored, model)] == ["exact", "recorded", "modelled"]


def test_the_pool_of_graphs_is_no_fragmented_memory() -> None:
    rows = [
        row(strategy, record=record(str(strategy), fragmentation=0.9)) for strategy in Strategy if "bucket" in strategy
    ]
    (finding,) = diagnose(rows, H100)
    assert Strategy.BUCKET_GRAPH not in [strategy for strategy, _ in finding.signs]
    assert len(finding.signs) == len(rows) - 1
    assert "not bucket_graph" in finding.symptom.remedy


def test_a_strategy_that_does_not_fit_has_no_symptom() -> None:
    assert names(row(audit=None, error="too wide")) == []
