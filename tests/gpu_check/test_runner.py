"""Order, shares of the time, failures that stop nothing, and going on after the device was lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.gpu_check.lab import Lab
from labkit.gpu_check.report import Report
from labkit.gpu_check.runner import Case, DeviceLostError, Item, run_items, worst
from tests.gpu_check.small import small_lab


class Clock:
    """Stands still but for what cases say they take."""

    def __init__(self) -> None:
        self.time, self.log = 0.0, []  # type: tuple[float, list[str]]

    def __call__(self) -> float:
        return self.time

    def case(self, name: str, seconds: float, result: Any = None) -> Case:
        def run() -> Any:
            self.log.append(name)
            self.time += seconds
            if isinstance(result, Exception):
                raise result
            return result or {}

        return Case(name, run)


def item(key: str, share: float, *cases: Case) -> Item:
    return Item(key, f"title of {key}", share, lambda lab: cases)


def on_disk(lab: Lab) -> Any:
    return json.loads(lab.report.path.read_text())


def run(lab: Lab, clock: Clock, *items: Item, seconds: float = 100.0) -> list[str]:
    lines: list[str] = []
    run_items(items, lab, seconds, say=lines.append, now=clock)
    return lines


def test_cases_run_in_order_and_are_in_the_file_with_what_they_found(tmp_path: Path) -> None:
    lab, clock = small_lab(tmp_path), Clock()
    first, second = item("a", 1, clock.case("x", 2, {"rate": 7.0, "shown": "seven"}), clock.case("y", 1)), item("b", 1)
    lines = run(lab, clock, first, second)
    assert clock.log == ["x", "y"]
    assert lines == ["-- title of a", "   ok      x (2.0 s): seven", "   ok      y (1.0 s)", "-- title of b"]
    entry = on_disk(lab)["items"][0]
    assert entry["cases"][0] == {"case": "x", "ok": True, "seconds": 2.0, "rate": 7.0, "shown": "seven"}
    assert (entry["status"], entry["seconds"], entry["not_reached"]) == ("done", 3.0, [])
    assert worst(lab.report) == 0


def test_a_case_that_fails_is_in_the_report_and_stops_nothing(tmp_path: Path) -> None:
    lab, clock = small_lab(tmp_path), Clock()
    wrong = clock.case("x", 0, AssertionError("12 of 40 differ\nmore lines"))
    run(lab, clock, item("a", 1, wrong, clock.case("y", 0)), item("b", 1, clock.case("z", 0)))
    assert clock.log == ["x", "y", "z"]
    data = on_disk(lab)
    failed = data["items"][0]["cases"][0]
    assert (failed["ok"], failed["error"]) == (False, "AssertionError: 12 of 40 differ")
    assert failed["where"][-1].startswith("run (test_runner.py:")
    assert data["ok"] is False
    assert worst(lab.report) == 1


def test_what_is_not_there_is_no_failure(tmp_path: Path) -> None:
    lab, clock = small_lab(tmp_path), Clock()
    lines = run(lab, clock, item("a", 1, clock.case("x", 0, {"ok": None, "reason": "no such gauge"})))
    assert lines[1] == "   none    x (0.0 s): no such gauge"
    assert on_disk(lab)["items"][0]["cases"][0]["reason"] == "no such gauge"
    assert worst(lab.report) == 0


def test_an_item_whose_cases_cannot_be_made_has_failed_and_the_next_one_runs(tmp_path: Path) -> None:
    lab, clock = small_lab(tmp_path), Clock()

    def unmade(_: Lab) -> Any:
        raise ValueError("no data")

    run(lab, clock, Item("a", "a", 1, unmade), item("b", 1, clock.case("x", 0)))
    assert on_disk(lab)["items"][0]["cases"][0]["error"] == "ValueError: no data"
    assert clock.log == ["x"]
    assert worst(lab.report) == 1


def test_each_item_has_its_share_of_the_time_and_what_the_ones_before_left(tmp_path: Path) -> None:
    # shares 1:1:2 of 100 s: until 25, 50 and 100
    lab, clock = small_lab(tmp_path), Clock()
    a = item("a", 1, clock.case("a1", 10))
    b = item("b", 1, *(clock.case(f"b{i}", 30) for i in range(3)))
    c = item("c", 2, *(clock.case(f"c{i}", 20) for i in range(3)))
    lines = run(lab, clock, a, b, c)
    # b begins at 10: b0 ends at 40 and b1 at 70, which is beyond 50; c begins at 70: c0 ends at 90, c1 at 110
    assert clock.log == ["a1", "b0", "b1", "c0", "c1"]
    states = {e["item"]: (e["status"], e["not_reached"]) for e in on_disk(lab)["items"]}
    assert states == {"a": ("done", []), "b": ("out_of_time", ["b2"]), "c": ("out_of_time", ["c2"])}
    assert "   out of time: 1 of 3 cases not reached" in lines


def test_an_item_that_was_not_begun_lists_all_its_cases(tmp_path: Path) -> None:
    lab, clock = small_lab(tmp_path), Clock()
    run(lab, clock, item("a", 1, clock.case("x", 500)), item("b", 1, clock.case("y", 1)))
    entry = on_disk(lab)["items"][1]
    assert (entry["status"], entry["not_reached"], entry["cases"]) == ("not_reached", ["y"], [])


def test_a_lost_device_ends_the_process_and_another_goes_on_after_that_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, clock = small_lab(tmp_path), Clock()
    monkeypatch.setattr(lab, "is_alive", lambda: False)
    cleared: list[int] = []
    monkeypatch.setattr(lab, "clear", lambda: cleared.append(1))  # on a lost device it would raise
    cases = [clock.case("x", 1), clock.case("y", 1, RuntimeError("illegal memory access")), clock.case("z", 1)]
    with pytest.raises(DeviceLostError, match="does not answer after a, y"):
        run(lab, clock, item("a", 1, *cases), item("b", 1))
    assert cleared == [1]
    again = small_lab(tmp_path)
    again.report = Report.resumed(lab.report.path)
    run(again, clock, item("a", 1, *cases), item("b", 1, clock.case("w", 1)))
    assert clock.log == ["x", "y", "z", "w"]
    data = on_disk(again)
    assert [case["case"] for case in data["items"][0]["cases"]] == ["x", "y", "z"]
    assert data["items"][0]["status"] == "done"
    assert worst(again.report) == 1  # of the process before


def test_a_fault_that_shows_when_the_device_is_waited_for_is_of_the_case_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, clock = small_lab(tmp_path), Clock()

    def synchronize() -> None:
        if clock.log[-1] == "x":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(lab, "synchronize", synchronize)
    with pytest.raises(DeviceLostError, match="does not answer after a, x"):
        run(lab, clock, item("a", 1, clock.case("x", 1), clock.case("y", 1)))
    assert "illegal memory access" in on_disk(lab)["items"][0]["cases"][0]["error"]
    assert clock.log == ["x"]


def test_the_file_is_whole_after_every_case(tmp_path: Path) -> None:
    lab, clock = small_lab(tmp_path), Clock()
    seen: list[list[str]] = []

    def look(name: str) -> Callable[[], Any]:
        def inside() -> Any:
            seen.append([case["case"] for entry in on_disk(lab)["items"] for case in entry["cases"]])
            return {}

        return inside

    run(lab, clock, item("a", 1, *(Case(name, look(name)) for name in "xyz")))
    assert seen == [[], ["x"], ["x", "y"]]
