"""The text of a measurement: marks, the ratio to pad_max, shared reasons once, and why the others did not run."""

from __future__ import annotations

from labkit.bench.record import Record
from labkit.experiments.measure_report import MeasureReport
from labkit.provenance import Figure, Origin
from labkit.views.measure_text import measure_text

MEASURED, EXACT = Origin.MEASURED, Origin.EXACT


def record(strategy: str, rate: float | None, reason: str = "", **more: Figure) -> Record:
    figures = dict(more)
    if rate is not None:
        figures |= {
            "events_per_s": Figure(rate, "events/s", MEASURED),
            "epoch_s": Figure(1000 / rate, "s", MEASURED, "extrapolated from 2 of 4 batches"),
            "padding_ratio": Figure(0.25, "1", EXACT),
            "kernels": Figure(None, "1", None, "a CPU runs no device kernels"),
        }
    who = {"device": "cpu: a processor", "model": "din, made-up events", "environment": {"torch": "2"}}
    return Record.failed(reason or "not looked at", figures=figures, strategy=strategy, policy={}, **who)


def test_every_number_has_its_mark_and_every_reason_is_said_once() -> None:
    amp = {
        "loss": Figure(0.7, "1", MEASURED),
        "loss_float32": Figure(0.693, "1", MEASURED),
        "loss_difference": Figure(0.0101, "1", MEASURED),
    }
    report = MeasureReport.of(
        [record("pad_max", 200.0), record("jagged", 500.0, **amp), record("sparse", None, "no kernels yet")],
        "9 of 10",
        {"seed": 4},
    )
    lines = measure_text(report).splitlines()
    assert lines[:2] == ["din, made-up events on cpu: a processor", "9 of 10"]
    header, first, second = (line.split() for line in lines[3:6])
    assert header[:4] == ["strategy", "events/s", "x", "pad_max"]
    assert first[:4] == ["pad_max", "*200", "*1.00", "*5.00"]
    assert second[:4] == ["jagged", "*500", "*2.50", "*2.00"]
    assert "25.0 %" in lines[4]
    assert "*25.0 %" not in lines[4]
    text = "\n".join(lines)
    assert "* measured on this device;  no mark: exact of the epoch planned with seed 4" in text
    assert "ops" in header  # a CPU launches nothing
    assert "launches" not in header
    assert "epoch, ops, kernels: of an epoch; step: median of the n timed steps" in text
    assert text.count("extrapolated from 2 of 4 batches") == 1
    assert "kernels: a CPU runs no device kernels" in text
    assert "jagged loss: 0.7, in float32 0.693, 1.0 % apart" in text
    assert lines[-1] == "sparse: not measured: no kernels yet"


def test_a_strategy_alone_is_not_compared_with_itself() -> None:
    text = measure_text(MeasureReport.of([record("pad_max", 500.0), record("jagged", None, "no")], "all"))
    assert "x pad_max" not in text
    assert "exact of the plan of this epoch" in text


def test_steps_too_few_for_an_epoch_are_shown_all_the_same() -> None:
    few = record("jagged", None, "only 1 of 9 batches were timed", n=Figure(1, "1", MEASURED))
    lines = measure_text(MeasureReport.of([few], "all")).splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("jagged ")] == [["jagged", "-", "-"]]
    assert "epoch: only 1 of 9 batches were timed" in lines
    assert not any("not measured" in line for line in lines)


def test_graphs_that_were_none_are_named_below() -> None:
    none = Figure(None, "1", None, "a CPU has no CUDA graphs: the same batches ran eagerly")
    eager = MeasureReport.of([record("bucket_graph", 9.0, graph_replays=none)], "all")
    assert "bucket_graph ran eagerly: a CPU has no CUDA graphs" in measure_text(eager)
    replayed = record("bucket_graph", 9.0, graph_replays=Figure(7, "1", MEASURED, "of the timed steps"))
    assert "eagerly" not in measure_text(MeasureReport.of([replayed], "all"))


def test_without_pad_max_there_is_no_ratio_and_without_a_run_no_table() -> None:
    alone = measure_text(MeasureReport.of([record("jagged", 500.0)], "all"))
    assert "x pad_max" not in alone
    none = measure_text(MeasureReport.of([record("jagged", None, "out of memory")], "all"))
    assert none.splitlines()[-1] == "jagged: not measured: out of memory"
    assert "events/s" not in none
