"""labkit measure: the JSON of the contract, a file of it, and bad input in one line before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from labkit.bench.record import FIGURES, Record
from labkit.cli import main
from labkit.experiments.measure_child import ChildRun
from labkit.experiments.measure_job import Progress
from labkit.experiments.measure_report import MeasureReport

SMALL = ["--seconds", "0.01", "--warm-up", "1", "--sequences", "60"]


@pytest.fixture
def lengths(tmp_path: Path) -> str:
    np.save(tmp_path / "lengths.npy", np.array([1, 2, 3, 30, 1, 2, 5, 8, 0, 4] * 10))
    return str(tmp_path / "lengths.npy")


def test_the_json_has_every_strategy_and_the_file_is_the_same(
    lengths: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    words = ["measure", lengths, *SMALL, "--strategy", "pad_max", "--strategy", "jagged", "--json", "--out", str(out)]
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert [s["strategy"] for s in data["strategies"]] == ["pad_max", "jagged"]
    for strategy in data["strategies"]:
        assert all(strategy[name] is not None or strategy["reason"][name] for name in FIGURES)
        assert strategy["events_per_s"] > 0
        assert strategy["provenance"]["events_per_s"] == "measured"
    assert data["data"].startswith("60 of 100 sequences, sampled")
    assert data["settings"]["seed"] == 0
    assert (data["settings"]["seconds"], data["settings"]["sequences"], data["settings"]["amp"]) == (0.01, 60, None)
    assert data["strategies"][0]["reason"]["slots"] == "exact of the epoch planned with seed 0"
    assert data["cancelled"] is False
    assert MeasureReport.load(out).to_dict() == data


def test_all_strategies_are_the_default_and_those_that_cannot_run_say_why(
    lengths: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", lengths, *SMALL, "--rows", "20", "--inference"]) == 0
    text = capsys.readouterr().out
    for strategy in ("pad_max", "pad_recent", "bucket_budget", "bucket_graph", "packed", "jagged", "sparse"):
        assert f"\n{strategy} " in text
    assert "rnn_packed: not measured: model din does not take the packed_sequence layout" in text
    assert "x pad_max" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--model dien", "model 'dien' does not exist: use one of din, sasrec, gru4rec, pooled, ctr."),
        ("--seconds 0", "seconds must be a number above 0: got 0.0."),
        ("--seconds x", "Invalid value for '--seconds': 'x' is not a number."),
        ("--amp fp8", "amp 'fp8' does not exist: use one of bf16, fp16."),
        ("--epoch --seconds 2", "--epoch contradicts --seconds 2: an epoch takes what it takes. Leave one out."),
        ("--warm-up 0", "warm_up must be 1 or more: got 0."),
        ("--workers -1", "workers must be 0 or more: got -1."),
        ("--sequences 0", "sequences must be 1 or more: got 0."),
        ("--token-budget 8 --strategy jagged", "longest length 30 is above token_budget 8, so it fits no batch"),
        ("--strategy rnn_packed", "model din does not take the packed_sequence layout of strategy rnn_packed"),
        ("--device tpu --strategy jagged", "device 'tpu' does not exist: use cpu, cuda or cuda:N."),
        ("--out none/run.json", "folder 'none' does not exist, so 'run.json' cannot be written: create it first."),
    ],
)
def test_bad_input_is_one_line(words: str, message: str, complaint: Callable[..., str]) -> None:
    def prepare(folder: Path) -> None:
        np.save(folder / "lengths.npy", np.array([1, 2, 3, 30]))

    assert complaint(["measure", "lengths.npy", *words.split()], prepare).startswith(message)


def test_where_nothing_could_be_measured_the_records_say_why_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "long.csv").write_text("length,count\n3,5\n9000,2\n")
    words = ["measure", str(tmp_path / "long.csv"), *SMALL, "--model", "sasrec", "--strategy", "pad_max", "--rows", "2"]
    assert main([*words, "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["strategies"][0]["epoch_s"] is None
    assert err.startswith("labkit: no strategy could be measured; pad_max: width 9000 is above max_positions 8192 of")
    assert err.count("\n") == 1


def test_an_interrupt_keeps_what_was_measured(
    lengths: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_to_the_end = ChildRun.__iter__

    def interrupted(run: ChildRun) -> Iterator[Progress | Record]:
        for event in run_to_the_end(run):
            yield event
            if isinstance(event, Record):
                raise KeyboardInterrupt

    monkeypatch.setattr(ChildRun, "__iter__", interrupted)
    out = tmp_path / "run.json"
    words = ["measure", lengths, *SMALL, "--strategy", "jagged", "--strategy", "pad_max", "--json", "--out", str(out)]
    assert main(words) == 130
    printed = capsys.readouterr()
    assert printed.err == "labkit: cancelled; 1 of 2 strategies were measured\n"
    data = json.loads(printed.out)
    assert ([s["strategy"] for s in data["strategies"]], data["cancelled"]) == (["jagged"], True)
    assert MeasureReport.load(out).to_dict() == data


def test_an_interrupt_ends_the_child_and_the_exit_code_says_so(
    lengths: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[ChildRun] = []

    def interrupted(run: ChildRun) -> Iterator[None]:
        seen.append(run)
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(ChildRun, "__iter__", interrupted)
    assert main(["measure", lengths, *SMALL, "--strategy", "jagged"]) == 130
    assert seen[0].cancelled
    assert capsys.readouterr() == ("", "labkit: cancelled; 0 of 1 strategy was measured\n")
