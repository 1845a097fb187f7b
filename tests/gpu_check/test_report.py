"""The JSON: strict, with an end, and refused where it is none."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from labkit.errors import DataFileError
from labkit.gpu_check.report import SCHEMA, Report, Status


def test_numbers_that_json_does_not_have_become_text(tmp_path: Path) -> None:
    report = Report(tmp_path / "run.json", {"gpu": "H200"})
    report.begin("a", "A")
    report.add("a", {"case": "x", "ok": True, "seconds": 0.1, "worst": math.inf, "each": [1.0, math.nan]})
    case = json.loads((tmp_path / "run.json").read_text())["items"][0]["cases"][0]
    assert (case["worst"], case["each"]) == ("inf", [1.0, "nan"])


def test_a_report_has_a_begin_an_end_and_its_bars(tmp_path: Path) -> None:
    report = Report(tmp_path / "run.json", {"gpu": "H200"})
    report.begin("a", "A")
    assert json.loads(report.path.read_text())["finished"] is None
    report.end("a", Status.DONE, 1.5)
    report.finish(2.0, [{"bar": "b", "met": True}])
    data = json.loads(report.path.read_text())
    assert (data["schema"], data["environment"], data["seconds"]) == (SCHEMA, {"gpu": "H200"}, 2.0)
    assert data["bars"] == [{"bar": "b", "met": True}]
    assert data["finished"] >= data["started"]


def test_an_item_that_goes_on_is_one_item(tmp_path: Path) -> None:
    report = Report(tmp_path / "run.json", {})
    for _ in range(2):
        report.begin("a", "A")
        report.end("a", Status.OUT_OF_TIME, 1.0, ["x"])
    assert [(e["item"], e["seconds"]) for e in report.data["items"]] == [("a", 2.0)]
    with pytest.raises(KeyError, match="item 'b' has not begun"):
        report.end("b", Status.DONE, 0.0)
    assert report.cases("b") == []


def test_what_is_no_report_cannot_be_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    for name in ("run.json", "none.json"):
        with pytest.raises(DataFileError, match=f"no report to go on with in .*{name}"):
            Report.resumed(tmp_path / name)
