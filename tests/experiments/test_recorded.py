"""Recorded runs: listed by date, labelled recorded with device and commit, refused where they are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labkit.bench.record import Record
from labkit.errors import DataFileError
from labkit.experiments.recorded import read_run, recorded_runs
from labkit.provenance import Figure, Origin

RECORD = Record.failed(
    "not counted",
    strategy="jagged",
    policy={"strategy": "jagged"},
    device="cuda:0",
    model="din",
    environment={},
    figures={
        "events_per_s": Figure(7.0, "events/s", Origin.MEASURED, "real events"),
        "slots": Figure(9, "slots", Origin.EXACT),
    },
)


def report(started: str = "2026-12-01T10:00:00Z", **changed: Any) -> dict[str, Any]:
    op = {"op": "segment_sum", "lengths": "zipf", "rows": 10, "events": 99, "median_s": 0.002, "spread_s": None}
    cases = [
        {"case": "segment_sum, zipf", "ok": True, "seconds": 1.0, **op, "share_of_copy": 0.9, "speedup": 2.0},
        {"case": "segment_max, zipf", "ok": False, "seconds": 1.0, "error": "RuntimeError: no"},
    ]
    return {
        "schema": "labkit.gpu_check/1",
        "environment": {"gpu": "NVIDIA H200", "commit": "abc1234"},
        "started": started,
        "items": [
            {"item": "ops", "cases": cases},
            {"item": "strategies", "cases": [{"case": "jagged", "ok": True, "seconds": 1.0, **RECORD.to_dict()}]},
        ],
        **changed,
    }


def write(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def test_runs_are_listed_the_newest_first(tmp_path: Path) -> None:
    write(tmp_path, "a.json", report("2026-12-01T10:00:00Z"))
    write(tmp_path, "b.json", report("2026-12-09T10:00:00Z"))
    (tmp_path / "README.md").write_text("no run")
    found = recorded_runs(tmp_path)
    assert [run.path.name for run in found] == ["b.json", "a.json"]
    assert (found[0].device, found[0].date, found[0].commit) == ("NVIDIA H200", "2026-12-09T10:00:00Z", "abc1234")
    assert recorded_runs(tmp_path / "none") == ()


def test_times_of_ops_are_recorded_figures_with_their_source(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, "run.json", report()))
    assert list(run.op_times()) == [("segment_sum", "zipf")]  # what failed has no time
    figures = run.op_times()["segment_sum", "zipf"]
    source = "recorded on NVIDIA H200, 2026-12-01T10:00:00Z, commit abc1234"
    assert figures["median_s"] == Figure(0.002, "s", Origin.RECORDED, f"{source}: 10 rows, 99 events")
    assert figures["spread_s"] == Figure(None, "s", None, f"not in the run {source}")


def test_records_of_strategies_are_recorded_no_longer_measured(tmp_path: Path) -> None:
    (record,) = read_run(write(tmp_path, "run.json", report())).strategies()
    assert (record.strategy, record.device, record.model) == ("jagged", "NVIDIA H200", "din")
    assert record.provenance == {"events_per_s": Origin.RECORDED, "slots": Origin.EXACT}
    assert record.reason["events_per_s"].startswith("recorded on NVIDIA H200, 2026-12-01T10:00:00Z, commit abc1234; ")


def test_an_item_that_is_not_there_has_no_cases(tmp_path: Path) -> None:
    assert read_run(write(tmp_path, "run.json", report(items=[]))).op_times() == {}


@pytest.mark.parametrize(
    "data",
    [[], {}, report(schema="labkit.gpu_check/9"), report(environment={"cpu": "x", "commit": "abc"})],
    ids=["list", "empty", "another schema", "run on a CPU"],
)
def test_what_is_no_recorded_run_is_refused(data: Any, tmp_path: Path) -> None:
    write(tmp_path, "run.json", data)
    with pytest.raises(DataFileError, match=r"run.json' is no run recorded on a GPU: expected schema"):
        recorded_runs(tmp_path)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(DataFileError, match="cannot read"):
        recorded_runs(tmp_path)


def test_all_that_labkit_brings_can_be_read() -> None:
    for run in recorded_runs():
        assert run.cases("kernels")
