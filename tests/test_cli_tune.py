"""labkit tune: the fewest slots within the share of events that may be lost, in a file that gives the same batches."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.cli import main
from labkit.config import TunedConfig
from labkit.lengths.presets import preset


@pytest.fixture
def tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run ``labkit tune --json``; the report and the file."""

    def run(source: str, *options: str) -> tuple[dict[str, Any], TunedConfig]:
        out = tmp_path / "tuned.json"
        assert main(["tune", source, "--out", str(out), *options, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["out"] == str(out)
        return report, TunedConfig.load(out)

    return run


def test_without_loss_there_is_no_cap_and_the_edges_are_optimal(tune: Any) -> None:
    report, tuned = tune("ml-100k")
    assert report["bucket_edges"] == [35, 66, 112, 168, 236, 307, 414, 737]
    assert (report["max_length"], report["lost_share"], report["truncated_share"]) == (None, 0.0, 0.0)
    assert report["strategies"][0]["slots"] == report["slots_by_buckets"][-1] == 122_106
    assert tuned.batch_policy == BatchPolicy(
        "bucket_budget", bucket_edges=(35, 66, 112, 168, 236, 307, 414, 737), overflow="truncate"
    )
    assert tuned.length_histogram == preset("ml-100k")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.5, 1.0])
def test_the_cap_is_the_lowest_within_the_share(tune: Any, share: float) -> None:
    report, tuned = tune("cdnow", "--max-events-lost", str(share))
    lengths = preset("cdnow").expand()

    def lost(cap: int) -> float:
        return float(np.maximum(lengths - cap, 0).sum() / lengths.sum())

    cap = report["max_length"]
    assert report["lost_share"] <= share
    assert report["lost_share"] == pytest.approx(lost(cap or lengths.max()))
    assert cap is None or cap == 1 or lost(cap - 1) > share
    assert (cap is None) == (share == 0.0)
    assert tuned.batch_policy.max_length == cap


def test_no_choice_of_edges_has_fewer_slots(tune: Any, tmp_path: Path) -> None:
    lengths = np.array([1, 1, 1, 2, 3, 3, 5, 8, 9, 9, 12])
    np.save(tmp_path / "l.npy", lengths)
    for multiple, buckets in itertools.product([1, 4], [1, 2, 3]):
        report, _ = tune(
            str(tmp_path / "l.npy"),
            "--max-buckets",
            str(buckets),
            "--length-multiple",
            str(multiple),
            "--token-budget",
            "99",
        )
        inner = itertools.chain.from_iterable(itertools.combinations(range(1, 12), k) for k in range(buckets))
        slots = []
        for edges in (np.array([*chosen, 12]) for chosen in inner):
            widths = -(-edges // multiple) * multiple
            slots.append(int(widths[np.searchsorted(edges, lengths)].sum()))
        assert report["strategies"][0]["slots"] == min(slots)
        assert len(report["bucket_edges"]) <= buckets


def test_the_file_serves_the_same_lengths_without_a_warning(tune: Any) -> None:
    _, tuned = tune("cdnow", "--max-events-lost", ".02")
    lengths = preset("cdnow").expand()
    sampler = tuned.sampler(lengths)
    assert sampler.plan.slots == tuned.figures["slots"].value
    assert sampler.plan.events_lost == tuned.figures["events_lost"].value
    assert sorted(itertools.chain.from_iterable(sampler)) == list(range(lengths.size))


def test_a_longer_user_of_tomorrow_is_cut_and_told_of(tune: Any) -> None:
    _, tuned = tune("cdnow")
    with pytest.warns(UserWarning, match=r"users cut 0 % then, 25\.0 % now; events lost 0 % then, 27\.2 % now"):
        tuned.sampler([1, 1, 300, 3])


def test_a_tuned_file_can_be_tuned_again(tune: Any, tmp_path: Path) -> None:
    tune("cdnow")
    report, _ = tune(str(tmp_path / "tuned.json"), "--max-buckets", "2")
    assert report["lengths"]["sequences"] == 23_570
    assert len(report["bucket_edges"]) == 2


def test_the_text_has_both_losses_and_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.json"
    assert main(["tune", "ml-100k", "--out", str(out), "--max-events-lost", ".05"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "943 sequences, 100,000 events: mean 106.04, P50 65, P95 310.6, P99 442.54, max 737",
        "bucket edges 30, 51, 76, 110, 150, 189, 237, 298 (8 of at most 8 buckets)",
        "cap 298: 54 users cut (5.7 %), 4,957 events lost (5.0 %), allowed 5.0 % of the events",
        "padding 11.21%, 107,047 slots in 9 batches",
        "token budget 16,384, largest batch 16,092 slots",
        f"written to {out}",
    ]
    assert main(["what-if", str(out), "--strategy", "bucket_budget"]) == 0
    assert "11.21%" in capsys.readouterr().out


def test_the_json_is_written_once_and_alone(tune: Any, tmp_path: Path) -> None:
    tune("cdnow")
    assert [p.name for p in tmp_path.iterdir()] == ["tuned.json"]
