"""MeasureReport: the JSON of DESIGN there and back, and a measurement that is shown later as recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.bench.record import FIGURES, Record
from labkit.errors import DataFileError
from labkit.experiments.measure_report import MeasureReport
from labkit.provenance import Figure, Origin

ENVIRONMENT = {"commit": "abc1234", "time": "2026-11-29T12:00:00Z", "torch": "2.13.0"}


def record(strategy: str, epoch_s: float | None, **change: object) -> Record:
    figures = {} if epoch_s is None else {"epoch_s": Figure(epoch_s, "s", Origin.MEASURED)}
    who = {"device": "cuda:0: H200", "model": "din, made-up events", "environment": ENVIRONMENT} | change
    return Record.failed("out of memory", figures=figures, strategy=strategy, policy={"rows": 2}, **who)


REPORT = MeasureReport.of([record("jagged", 2.0), record("pad_max", None)], "10 sequences", {"seed": 3})


def test_the_fields_are_those_of_the_contract() -> None:
    data = REPORT.to_dict()
    assert set(data) == {"device", "model", "data", "settings", "cancelled", "environment", "strategies"}
    for strategy in data["strategies"]:
        assert set(strategy) >= {"strategy", "policy", "provenance", "reason", *FIGURES}
        for name in FIGURES:
            assert (strategy[name] is None) == (name not in strategy["provenance"])
            assert strategy[name] is not None or strategy["reason"][name]


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    assert MeasureReport.load(REPORT.save(tmp_path / "run.json")) == REPORT


def test_a_file_of_before_settings_were_kept_is_read() -> None:
    data = {name: part for name, part in REPORT.to_dict().items() if name not in ("settings", "cancelled")}
    found = MeasureReport.from_dict(data)
    assert (found.settings, found.cancelled, found.strategies) == ({}, False, REPORT.strategies)


def test_a_stored_run_is_recorded_with_device_date_and_commit() -> None:
    stored = REPORT.recorded().strategies[0]
    note = "recorded on cuda:0: H200, 2026-11-29T12:00:00Z, commit abc1234"
    assert stored.figures["epoch_s"] == Figure(2.0, "s", Origin.RECORDED, note)


def test_a_process_that_died_does_not_say_what_the_device_is_called() -> None:
    died = record("packed", None, device="cuda", model="din", environment={})
    report = MeasureReport.of([died, record("jagged", 2.0)], "10 sequences")
    assert (report.device, report.environment) == ("cuda:0: H200", ENVIRONMENT)
    assert MeasureReport.of([died], "").device == "cuda"


def test_records_of_two_devices_are_no_report() -> None:
    with pytest.raises(ValueError, match="of one device and model"):
        MeasureReport.of([record("jagged", 1.0), record("jagged", 1.0, device="cpu")], "")
    with pytest.raises(ValueError, match="at least one record"):
        MeasureReport.of([], "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read "),
        ("[]", "this is no measurement: it lacks device, model, data, environment, strategies"),
        (json.dumps({**REPORT.to_dict(), "strategies": [{}]}), "this is no record of a measurement"),
    ],
)
def test_what_is_no_measurement_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DataFileError, match=message):
        MeasureReport.load(tmp_path / "run.json")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"cannot read .*none\.json'"):
        MeasureReport.load(tmp_path / "none.json")
