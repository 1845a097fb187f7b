"""The runner, the verdicts and the arithmetic of timings, with a clock that is made up: nothing here is timed."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.benchmarks import notebook
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.model import Bar, Benchmark, Measurement, Outcome
from tests.benchmarks.runner import main
from tests.benchmarks.table import bar_text, lines, quantity
from tests.benchmarks.timing import Pairs, Samples, in_turns, repeat


def measured(ratio: float | None = None, median: float = 1.0, unit: str = "s") -> Measurement:
    reference = None if ratio is None else Samples((1.0,))
    return Measurement(unit, Samples((median,)), "by hand", ratio=ratio, reference=reference)


def benchmark(name: str, found: Measurement | Exception, bar: Bar | None = None) -> Benchmark:
    def run(quick: bool) -> Measurement:
        if isinstance(found, Exception):
            raise found
        return found

    return Benchmark(name, f"what {name} is", bar or Bar(2), run)


# --- verdicts


@pytest.mark.parametrize(
    ("found", "bar", "met"),
    [
        (measured(ratio=1.9), Bar(2), True),
        (measured(ratio=2.0), Bar(2), True),
        (measured(ratio=2.1), Bar(2), False),
        (measured(), Bar(2), False),  # a ratio that was not measured
        (measured(ratio=float("nan")), Bar(2), False),
        (measured(ratio=float("inf")), Bar(2), False),
        (measured(median=4e-3), Bar(5e-3, "s"), True),
        (measured(median=6e-3), Bar(5e-3, "s"), False),
        (measured(ratio=9, median=4e-3), Bar(5e-3, "s"), True),  # the bar is on the median
        (measured(ratio=0.5), Bar(0.5, least=True), True),
        (measured(ratio=0.4), Bar(0.5, least=True), False),
        (measured(), Bar(0.5, least=True), False),
        (measured(ratio=float("inf")), Bar(0.5, least=True), False),
    ],
)
def test_a_bar_is_met_up_to_its_value(found: Measurement, bar: Bar, met: bool) -> None:
    assert bar.met_by(found) is met


def test_a_bar_in_another_unit_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^the bar is in s, the measurement in bytes$"):
        Bar(1, "s").met_by(measured(unit="bytes"))


# --- the exit code


def test_all_bars_met_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([benchmark("a", measured(ratio=1)), benchmark("b", measured(ratio=2))], []) == 0
    assert "all 2 bars met" in capsys.readouterr().out


@pytest.mark.parametrize("bad", [measured(ratio=3), RuntimeError("no file\nthere")], ids=["missed", "broken"])
def test_one_bar_missed_exits_with_1_and_the_others_still_run(
    bad: Measurement | Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([benchmark("bad", bad), benchmark("good", measured(ratio=1))], []) == 1
    out = capsys.readouterr().out
    assert out.endswith("missed: bad\n")
    assert "good: what good is" in out
    assert ("BROKEN" in out and "bad: RuntimeError: no file there" in out) is isinstance(bad, Exception)


def test_only_runs_what_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    both = [benchmark("a", measured(ratio=9)), benchmark("b", measured(ratio=1))]
    assert main(both, ["--only", "b"]) == 0
    assert "what a is" not in capsys.readouterr().out


def test_an_unknown_name_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([benchmark("a", measured(ratio=1))], ["--only", "z"])
    assert ended.value.code == 2
    assert "'z'" in capsys.readouterr().err


def test_quick_reaches_the_benchmarks() -> None:
    seen: list[bool] = []

    def run(quick: bool) -> Measurement:
        seen.append(quick)
        return measured(ratio=1)

    main([Benchmark("a", "what", Bar(2), run)], ["--quick"])
    main([Benchmark("a", "what", Bar(2), run)], [])
    assert seen == [True, False]


# --- JSON


def test_json_keeps_every_sample_and_the_environment(tmp_path: Path) -> None:
    found = Measurement("s", Samples((1.0, 2.0, 4.0)), "by hand", ratio=2.0, reference=Samples((0.5, 1.0, 2.0)))
    broken = benchmark("broken", RuntimeError("no"))
    assert main([benchmark("a", found), broken], ["--json", str(tmp_path / "out.json")]) == 1
    record = json.loads((tmp_path / "out.json").read_text())
    assert set(record["environment"]) >= {"cpu", "cores", "load", "python", "numpy", "duckdb", "labkit", "commit"}
    first, second = record["benchmarks"]
    assert first["samples"] == [1.0, 2.0, 4.0]
    assert (first["median"], first["reference_median"], first["spread"], first["n"]) == (2.0, 1.0, 1.5, 3)
    assert (first["ok"], first["ratio"], first["bar"], first["bar_unit"], first["error"]) == (True, 2.0, 2, None, None)
    assert (second["ok"], second["median"], second["ratio"], second["error"]) == (False, None, None, "RuntimeError: no")
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_a_folder_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = benchmark("never", RuntimeError("ran"))
    assert main([never], ["--json", str(tmp_path / "no" / "out.json")]) == 2
    captured = capsys.readouterr()
    assert "does not exist" in captured.err
    assert captured.out == ""


# --- the table


def test_the_table_is_aligned() -> None:
    outcomes = [
        Outcome(benchmark("a", measured()), measured(ratio=1.234)),
        Outcome(benchmark("b", measured()), None, "x"),
    ]
    head, rule, first, second, *_ = lines(outcomes)
    assert first.split() == ["a:", "what", "a", "is", "1", "s", "-", "1", "1", "s", "1.23x", "<=", "2x", "ok"]
    assert second.split() == ["b:", "what", "b", "is", "-", "-", "0", "-", "-", "<=", "2x", "BROKEN"]
    assert head.index("verdict") == first.index("ok") == second.index("BROKEN")
    assert len(rule) >= len(first)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.34, "s", "12.3 s"),
        (0.0456, "s", "45.6 ms"),
        (1.5e-5, "s", "15 us"),
        (2e-9, "s", "2 ns"),
        (1234.0, "s", "1234 s"),
        (486e6, "bytes", "486 MB"),
    ],
)
def test_quantities_have_three_digits_and_a_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_bars_say_their_unit() -> None:
    assert (bar_text(Bar(1.2)), bar_text(Bar(5e-3, "s"))) == ("<= 1.2x", "<= 5 ms")
    assert bar_text(Bar(0.5, least=True)) == ">= 0.5x"


# --- timings


def clock(*seconds: float) -> Callable[[], float]:
    """Runs through the given durations: each pair of readings is one of them apart."""

    def readings() -> Iterator[float]:
        now = 0.0
        for duration in seconds:
            yield now
            now += duration
            yield now

    return readings().__next__


def test_warm_up_calls_are_made_and_not_timed() -> None:
    calls: list[int] = []
    found = repeat(lambda: calls.append(1), 3, warm_up=2, clock=clock(1, 2, 4))
    assert found.values == (1, 2, 4)
    assert len(calls) == 5


def test_pairs_take_turns_and_the_ratio_is_that_of_pairs() -> None:
    # the machine is ten times slower in the last pair: the ratio does not see it
    calls: list[str] = []
    found = in_turns(
        lambda: calls.append("a"), lambda: calls.append("b"), 3, warm_up=0, clock=clock(2, 1, 1, 2, 20, 10)
    )
    assert "".join(calls) == "abbaab"
    assert found == Pairs(Samples((2, 2, 20)), Samples((1, 1, 10)))
    assert found.ratio == 2


def test_garbage_collection_is_off_on_the_clock_and_back_afterwards() -> None:
    states: list[bool] = []
    repeat(lambda: states.append(gc.isenabled()), 2, warm_up=1)
    in_turns(lambda: states.append(gc.isenabled()), lambda: None, 1, warm_up=0)
    assert states == [True, False, False, False]
    assert gc.isenabled()


def test_spread_is_the_distance_of_the_quartiles() -> None:
    assert Samples((1.0, 2.0, 3.0, 4.0, 5.0)).spread == 2.0
    assert Samples((1.0,)).spread is None


# --- the benchmarks themselves


def test_every_bar_of_the_lab_is_there_once() -> None:
    bars = {b.name: (b.bar.limit, b.bar.unit) for b in BENCHMARKS}
    assert len(bars) == len(BENCHMARKS)
    assert bars == {
        "histogram": (5, None),
        "slider-move": (5e-3, "s"),
        "optimal-edges": (0.1, "s"),
        "plan-time": (3, None),
        "plan-memory": (8, None),
        "rank-time": (3, None),
        "rank-memory": (8, None),
        "packing-what-if": (50e-3, "s"),
        "packing-plan": (5, None),
        "padding-arrays": (1, None),
        "padding-tensors": (2, None),
        "padding-offsets": (1, None),
        "loader-padded": (15, None),
        "loader-jagged": (20, None),
        "loader-packed": (4, None),
        "loader-long": (1.5, None),
        "din-buckets": (0.5, None),
        "din-jagged": (0.5, None),
        "din-nested": (1, None),
        "cost-exact": (0, "misfits"),
        "cost-peak": (0, "bytes"),
        "cost-move": (5e-3, "s"),
        "event-log": (1.2, None),
        "sampler": (0.02, None),
        "import": (2, None),
        "notebook": (60, "s"),
    }
    assert {b.name for b in BENCHMARKS if b.bar.least} == {
        "din-buckets",
        "din-jagged",
        "loader-padded",
        "loader-jagged",
        "loader-packed",
        "loader-long",
    }


def test_a_missing_notebook_is_a_failure_and_no_skip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notebook, "NOTEBOOK", tmp_path / "01_gone.ipynb")
    assert main([notebook.BENCHMARK], []) == 1
    assert "FileNotFoundError: notebooks/01_gone.ipynb is not there" in capsys.readouterr().out
