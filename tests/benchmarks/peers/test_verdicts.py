"""Verdicts, missing peers, rounds and exit codes, with tables and a clock that are made up; no peer is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.peers.__main__ import TABLES
from tests.benchmarks.peers.attempt import Missing, attempt, reasons
from tests.benchmarks.peers.fairness import BatchFigures
from tests.benchmarks.peers.rounds import in_rounds, times_faster
from tests.benchmarks.peers.runner import main
from tests.benchmarks.peers.tables import Row, Table, markdown
from tests.benchmarks.peers.verdicts import fast_enough, keeps_its_word, never_above, no_more_packs
from tests.benchmarks.timing import Samples

CURVE = (100, 60, 50)


@pytest.mark.parametrize(
    ("peers", "met"),
    [
        ({"a": (3, 50), "b": (2, 70)}, True),
        ({"a": (3, 49), "b": (2, 70)}, False),
        ({"a": (2, 60)}, True),
        ({"a": (2, 59)}, False),  # labkit's 50 with 3 edges do not count against 2
        ({"a": (5, 50)}, True),  # more edges than the curve has: nothing is left to gain
        ({}, False),  # nothing to compare with
    ],
)
def test_padding_is_compared_at_the_number_of_edges_that_a_peer_has_left(
    peers: dict[str, tuple[int, int]], met: bool
) -> None:
    assert never_above(CURVE, peers) is met


@pytest.mark.parametrize(
    ("largest", "missing", "repeated", "budget", "met"),
    [(8, 0, 0, 8, True), (9, 0, 0, 8, False), (9, 0, 0, None, True), (8, 1, 0, 8, False), (8, 0, 1, None, False)],
)
def test_a_sampler_keeps_its_word(largest: int, missing: int, repeated: int, budget: int | None, met: bool) -> None:
    figures = BatchFigures(batches=1, slots=9, largest=largest, events=9, missing=missing, repeated=repeated)
    assert keeps_its_word(figures, budget) is met


@pytest.mark.parametrize(
    ("ratios", "met"), [([20], True), ([19.9], False), ([400, 19], False), ([], False), ([float("nan")], False)]
)
def test_the_fastest_peer_decides(ratios: list[float], met: bool) -> None:
    assert fast_enough(ratios) is met


@pytest.mark.parametrize(("own", "other", "met"), [(5, 5, True), (4, 5, True), (6, 5, False), (5, None, False)])
def test_packs_are_compared_as_they_are(own: int, other: int | None, met: bool) -> None:
    assert no_more_packs(own, other) is met


# --- missing peers


def failing(error: Exception) -> Callable[[], int]:
    def call() -> int:
        raise error

    return call


def test_a_peer_that_does_not_load_is_missing_with_the_reason() -> None:
    found = {"a": attempt(failing(ImportError("no\nmodule"))), "b": attempt(failing(OSError("lib"))), "c": attempt(int)}
    assert found == {"a": Missing("ImportError: no module"), "b": Missing("OSError: lib"), "c": 0}
    assert reasons(found) == ["a is missing: ImportError: no module", "b is missing: OSError: lib"]


def test_a_wrong_call_is_no_missing_peer() -> None:
    with pytest.raises(TypeError, match="ours"):
        attempt(failing(TypeError("ours")))


# --- rounds


def test_each_round_starts_with_another_and_times_all() -> None:
    called: list[str] = []
    calls = {name: lambda name=name: called.append(name) for name in "abc"}
    ticks = iter(range(100))
    found = in_rounds(calls, 4, clock=lambda: float(next(ticks)))
    assert "".join(called) == "abc" + "bca" + "cab" + "abc"
    assert found == {name: Samples((1.0,) * 4) for name in "abc"}


def test_times_faster_is_the_median_over_rounds() -> None:
    # 10 / 1, 30 / 2, 20 / 1
    assert times_faster(Samples((1.0, 2.0, 1.0)), Samples((10.0, 30.0, 20.0))) == 15


# --- tables and exit codes


def table(*met: bool | None) -> Callable[[bool], Table]:
    rows = tuple(Row((f"row {i}", "1"), {"value": 1}, m) for i, m in enumerate(met))
    return lambda quick: Table(f"quick {quick}", ("what", "n"), rows, ("a note",))


@pytest.mark.parametrize(
    ("tables", "code", "end"),
    [
        ({"a": table(True, None), "b": table(True, True)}, 0, "all 3 bars met\n"),
        ({"a": table(True, False), "b": table(True)}, 1, "missed: a 1 of 2\n"),
        ({"a": table(None), "b": table(True)}, 1, "missed: a: nothing to compare with\n"),
    ],
    ids=["met", "missed", "without a bar"],
)
def test_the_exit_code_obeys_every_bar(
    tables: dict[str, Callable[[bool], Table]], code: int, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tables, []) == code
    assert capsys.readouterr().out.endswith(end)


def test_the_json_has_versions_verdicts_and_figures(tmp_path: Path) -> None:
    target = tmp_path / "peers.json"
    assert main({"a": table(True, None), "b": table(False)}, ["--only", "a", "--quick", "--json", str(target)]) == 0
    record = json.loads(target.read_text())
    assert record["quick"] is True
    assert {"cpu", "cores", "commit", "labkit", "numpy"} <= set(record["environment"])
    assert set(record["peers"]) >= {"lhotse", "transformers", "trl", "speechbrain", "torch"}
    rows = [{"value": 1, "met": True}, {"value": 1, "met": None}]
    assert record["tables"] == {"a": {"title": "quick True", "rows": rows, "notes": ["a note"]}}


def test_a_folder_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main({"a": table(True)}, ["--json", str(tmp_path / "no" / "peers.json")]) == 2
    assert capsys.readouterr().out == ""


def test_a_table_is_markdown_and_in_line() -> None:
    assert markdown(table(True, False, None)(False)) == [
        "### quick False",
        "",
        "| what  |   n | verdict |",
        "| ----- | --: | ------- |",
        "| row 0 |   1 | ok      |",
        "| row 1 |   1 | MISSED  |",
        "| row 2 |   1 |         |",
        "",
        "- a note",
    ]


def test_all_four_tables_are_made() -> None:
    assert list(TABLES) == ["padding", "sampling", "planning", "packing"]
