"""The command line about edges: other costs, charges, ghost rows; edges of other tools scored and written."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from labkit.batching import costs
from labkit.batching.edges import optimal_edges
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.cli import main
from labkit.config import TunedConfig
from labkit.experiments.tune import FINITE_STEPS, Limits, tune
from labkit.interchange import read_edges
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import preset


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in an empty folder; its JSON, or its text without ``--json``."""
    monkeypatch.chdir(tmp_path)

    def run(words: str) -> Any:
        assert main(words.split()) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in words else out

    return run


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command that must fail: its one line; what lies in the folder stays as it was. ``''`` is an empty word."""
    monkeypatch.chdir(tmp_path)

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.iterdir()}

    def run(words: str, files: dict[str, str | bytes] | None = None) -> str:
        for name, content in (files or {}).items():
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        before = contents()
        assert main(shlex.split(words)) == 2
        captured = capsys.readouterr()
        assert (captured.out, contents()) == ("", before)
        assert captured.err.startswith("labkit: ")
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix("labkit: ").strip()

    return run


# --- tune and what-if


def test_what_if_takes_another_row_cost(answer: Any) -> None:
    report = answer("what-if household-lines --strategy bucket_rows --edge-cost attention:0.01 --json")
    wanted = optimal_edges(preset("household-lines"), 8, cost=costs.attention(0.01)).edges
    assert report["bucket_edges"] == list(wanted) != list(optimal_edges(preset("household-lines"), 8).edges)
    text = answer("what-if household-lines --strategy bucket_rows --edge-cost attention:0.01")
    assert f"bucket edges {', '.join(map(str, wanted))} (optimal for attention:0.01)\n" in text


def test_tune_chooses_the_number_of_buckets(answer: Any) -> None:
    # the curve of ml-100k falls by less than 20000 slots a bucket from the fourth bucket on
    report = answer("tune ml-100k --out t.json --charge-per-bucket 20000 --json")
    curve = report["slots_by_buckets"]
    savings = [a - b for a, b in pairwise(curve)]
    assert len(report["bucket_edges"]) == 1 + sum(saving > 20_000 for saving in savings) < 8
    assert len(curve) == 8
    assert report["charge_per_bucket"] == 20_000
    text = answer("tune ml-100k --out t.json --charge-per-bucket 20000")
    assert "no further one saves more than its charge of 20,000." in text


def test_tune_weighs_with_another_row_cost(answer: Any) -> None:
    report = answer("tune household-lines --out t.json --edge-cost attention:0.01 --json")
    found = optimal_edges(preset("household-lines"), 8, cost=costs.attention(0.01))
    assert report["bucket_edges"] == list(found.edges)
    assert report["slots_by_buckets"] is None
    assert report["cost_by_buckets"] == pytest.approx(list(found.curve or ()))


def test_tune_counts_the_ghost_rows_of_static_shapes(answer: Any) -> None:
    report = answer("tune household-lines --out t.json --strategy bucket_graph --json")
    (scored,) = report["strategies"]
    ideal = optimal_edges(preset("household-lines"), 8)
    before = what_if(preset("household-lines"), BatchPolicy("bucket_graph", bucket_edges=ideal.edges))
    assert (round(before.padding_ratio, 4), round(scored["padding_ratio"], 4)) == (0.2218, 0.2081)
    assert scored["slots"] == report["slots_by_buckets"][-1]
    assert TunedConfig.load("t.json").batch_policy.strategy == "bucket_graph"


@pytest.mark.parametrize("strategy", ["bucket_budget", "bucket_graph"])
@pytest.mark.parametrize("name", ["cdnow", "household-lines", "basket-items", "ml-100k"])
@pytest.mark.parametrize(
    "limits", [{}, {"max_buckets": 3}, {"length_multiple": 16}, {"max_events_lost": 0.02}], ids=str
)
def test_tune_never_has_more_slots_than_optimal_edges(name: str, strategy: str, limits: dict[str, Any]) -> None:
    found = tune(preset(name), Limits(strategy=strategy, **limits))  # type: ignore[arg-type]
    policy = found.what_if.policy
    ideal = optimal_edges(
        preset(name).capped(policy.max_length), found.limits.max_buckets, length_multiple=policy.length_multiple
    )
    before = BatchPolicy(
        strategy,
        bucket_edges=ideal.edges,
        max_length=policy.max_length,
        length_multiple=policy.length_multiple,
    )
    assert found.what_if.slots <= what_if(preset(name), before).slots


def test_beyond_the_threshold_the_edges_are_those_of_endless_data() -> None:
    histogram = LengthHistogram.from_lengths(range(1, 4100))
    assert 8 * histogram.distinct**2 > FINITE_STEPS
    found = tune(histogram, Limits(strategy="bucket_graph"))  # type: ignore[arg-type]
    assert found.edges == optimal_edges(histogram, 8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tune cdnow --out t.json --strategy jagged", "tune searches bucket_budget or bucket_graph: got jagged."),
        (
            "tune cdnow --out t.json --charge-per-bucket -1",
            "charge_per_bucket must be a finite number of 0 or more: got -1.0.",
        ),
        (
            "tune cdnow --out t.json --edge-cost flops",
            "edge cost 'flops' does not exist: use slots, attention or attention:ALPHA.",
        ),
        (
            "what-if cdnow --edge-cost attention:x",
            "edge cost 'attention:x' has no alpha of 0 or more: write attention:0.01, for example.",
        ),
        (
            "what-if cdnow --edge-cost attention --edges-by quantile",
            "--edge-cost is what optimal edges make least of: --edges-by quantile has none.",
        ),
        (
            "what-if cdnow --edge-cost attention --edges 8,217",
            "--edges contradicts --edge-cost: both decide on the bucket edges. Leave one out.",
        ),
    ],
)
def test_costs_that_are_none_are_refused(complaint: Any, words: str, message: str) -> None:
    assert complaint(words) == message


# --- score-edges


def test_edges_of_another_tool_are_scored(answer: Any, tmp_path: Path) -> None:
    (tmp_path / "bins.json").write_text('{"bucket_duration_bins": [8, 20, 50, 100]}')
    text = answer("score-edges ml-100k bins.json --format lhotse")
    assert text.startswith("your 5 edges waste 67.1%, the best 5 waste 29.3% ")
    report = answer("score-edges ml-100k bins.json --format lhotse --json")
    assert report["bucket_edges"] == [8, 20, 50, 100, 737]
    assert report["best_bucket_edges"] == [59, 150, 245, 405, 737]
    assert (round(report["padding_ratio"], 3), round(report["best_padding_ratio"], 3)) == (0.671, 0.293)


def test_a_cap_is_taken_before_the_score(answer: Any, tmp_path: Path) -> None:
    (tmp_path / "bins.json").write_text("[9, 21]")
    report = answer("score-edges ml-100k bins.json --format tf-data --max-length 50 --json")
    assert report["bucket_edges"] == [8, 20, 50]
    assert report["lengths"]["max"] == 50


@pytest.mark.parametrize(
    ("words", "files", "message"),
    [
        (
            "score-edges cdnow b.json --format lhotse",
            {"b.json": "[20, 8]"},
            "b.json: duration bins must increase: 8 follows 20 at position 1. Sort them.",
        ),
        (
            "score-edges cdnow b.json --format tf-data",
            {"b.json": '{"bucket_boundaries": [8, 20], "bucket_batch_sizes": [4, 2]}'},
            (
                "b.json: bucket_batch_sizes must have one size more than boundaries, for the open bucket: got 2 sizes "
                "for 2 boundaries."
            ),
        ),
        (
            "score-edges cdnow b.json --format yaml",
            {"b.json": "[8]"},
            "Invalid value for '--format': 'yaml' does not exist: use one of lhotse, tf-data, capture-sizes.",
        ),
        (
            "score-edges cdnow b.json --format lhotse",
            {"b.json": "length,count\n1,2\n"},
            "b.json: not JSON: Expecting value at line 1, column 1.",
        ),
        (
            "score-edges cdnow b.json",
            {"b.json": "[8]"},
            "Missing option '--format'. Choose from: lhotse, tf-data, capture-sizes",
        ),
        (
            "score-edges cdnow b.yaml --format lhotse",
            {"b.yaml": "bucket_duration_bins: [8]\n"},
            "b.yaml: not JSON: Expecting value at line 1, column 1. Write YAML as JSON first.",
        ),
        (
            "score-edges cdnow b.json --format lhotse",
            {"b.json": b"\x7fELF\xe5"},
            "b.json: not JSON: byte 4 is not UTF-8. An edges file is JSON text.",
        ),
        (
            "score-edges cdnow b.json --format lhotse",
            {"b.json": f"[{'9' * 5000}]"},
            "b.json: not JSON that can be read: an integer has 5000 digits, 2147483647 is the largest length.",
        ),
        (
            "score-edges cdnow '' --format lhotse",
            {},
            "the file name is empty, or '.': name the JSON file with the edges.",
        ),
        (
            "convert t.yaml --to lhotse --out e.json",
            {"t.yaml": "kind: labkit.tuned_config\n"},
            "'t.yaml': not JSON: Expecting value at line 1, column 1. Write YAML as JSON first.",
        ),
        (
            "convert t.yaml --to lhotse --out e.json",
            {"t.yaml": "{}"},
            "'t.yaml': not a tuned configuration of labkit: it has no field 'kind' that says 'labkit.tuned_config'.",
        ),
    ],
    ids=[
        "unsorted",
        "sizes",
        "format",
        "another kind",
        "no format",
        "yaml",
        "binary",
        "digits",
        "no name",
        "tuned yaml",
        "json as yaml",
    ],
)
def test_files_that_are_none_are_one_line(
    complaint: Any, words: str, files: dict[str, str | bytes], message: str
) -> None:
    assert complaint(words, files) == message


# --- convert


@pytest.mark.parametrize("target", ["lhotse", "tf-data", "capture-sizes"])
def test_a_tuned_configuration_is_written_for_another_tool(answer: Any, target: str) -> None:
    tuned = answer("tune ml-100k --out t.json --json")
    report = answer(f"convert t.json --to {target} --out e.json --json")
    assert report == {"format": target, "out": "e.json", "not_carried": ["overflow truncate"]}
    assert list(read_edges("e.json", target).edges) == tuned["bucket_edges"]
    score = answer(f"score-edges ml-100k e.json --format {target} --json")
    assert score["padding_ratio"] == score["best_padding_ratio"] == tuned["strategies"][0]["padding_ratio"]


def test_what_the_file_cannot_hold_is_said(answer: Any) -> None:
    answer("tune ml-100k --out t.json --max-events-lost 0.05")
    cap = TunedConfig.load("t.json").batch_policy.max_length
    assert answer("convert t.json --to lhotse --out e.json") == (
        f"written to e.json; not in the file: max_length {cap}, overflow truncate\n"
    )


def test_a_tuned_configuration_without_buckets_is_refused(complaint: Any, tmp_path: Path) -> None:
    TunedConfig.from_policy(preset("cdnow"), BatchPolicy("pad_batch")).save(tmp_path / "t.json")
    message = "strategy pad_batch has no bucket edges to write: use a bucket strategy."
    assert complaint("convert t.json --to lhotse --out e.json") == message


def test_a_folder_that_is_not_there_is_refused(complaint: Any, tmp_path: Path) -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(217,))
    TunedConfig.from_policy(preset("cdnow"), policy).save(tmp_path / "t.json")
    assert complaint("convert t.json --to lhotse --out no/e.json") == (
        "folder 'no' does not exist, so 'e.json' cannot be written: create it first."
    )


@pytest.mark.parametrize("target", ["lhotse", "tf-data", "capture-sizes"])
@pytest.mark.parametrize("out", ["t.json", "other.json", "notes.txt", "data.bin"])
def test_only_edges_of_the_same_format_are_overwritten(complaint: Any, tmp_path: Path, out: str, target: str) -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(217,))
    for name in ("t.json", "other.json"):
        TunedConfig.from_policy(preset("cdnow"), policy).save(tmp_path / name)
    files = {"notes.txt": "notes", "data.bin": b"[\xff"}
    assert complaint(f"convert t.json --to {target} --out {out}", files) == (
        f"'{out}' is there and is no edges file of format {target}, so it is not overwritten: choose another name."
    )


def test_edges_are_written_again(answer: Any, tmp_path: Path, complaint: Any) -> None:
    TunedConfig.from_policy(preset("cdnow"), BatchPolicy("bucket_rows", bucket_edges=(217,))).save(tmp_path / "t.json")
    (tmp_path / "e.json").write_text('{"bucket_duration_bins": [8]}')
    answer("convert t.json --to lhotse --out e.json")
    assert read_edges("e.json", "lhotse").edges == (217,)
    assert complaint("convert t.json --to tf-data --out e.json").startswith("'e.json' is there and is no edges file")
