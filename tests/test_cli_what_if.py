"""labkit what-if: the reference numbers of every data set, the JSON, the table, a tuned file as its input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.cli import main
from labkit.config import TunedConfig
from labkit.lengths.presets import preset

PRESETS = ["cdnow", "household-lines", "basket-items", "ml-100k"]


@pytest.fixture
def what_if(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run ``labkit what-if --json`` and return the JSON, its strategies by key under ``by_key``."""

    def run(*arguments: str) -> dict[str, Any]:
        assert main(["what-if", *arguments, "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        data: dict[str, Any] = json.loads(captured.out, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
        return {**data, "by_key": {record["strategy"]: record for record in data["strategies"]}}

    return run


# --- reference numbers


@pytest.mark.parametrize(
    ("name", "sequences", "events", "mean", "longest", "padding"),
    [
        ("cdnow", 23_570, 69_659, 2.96, 217, 0.9864),
        ("household-lines", 2_469, 1_469_307, 595.10, 4193, 0.8581),
        ("basket-items", 155_848, 1_469_307, 9.43, 161, 0.9414),
        ("ml-100k", 943, 100_000, 106.04, 737, 0.8561),
    ],
)
def test_pad_max(
    what_if: Any, name: str, sequences: int, events: int, mean: float, longest: int, padding: float
) -> None:
    found = what_if(name, "--strategy", "pad_max")
    lengths = found["lengths"]
    assert (lengths["sequences"], lengths["events"], lengths["max"]) == (sequences, events, longest)
    assert round(lengths["mean"], 2) == mean
    assert round(found["by_key"]["pad_max"]["padding_ratio"], 4) == padding
    assert found["bucket_edges"] is None


@pytest.mark.parametrize(
    ("name", "users_cut", "events_kept", "padding"),
    [
        ("cdnow", 0.0008, 0.9876, 0.9416),
        ("household-lines", 0.9081, 0.0800, 0.0474),
        ("basket-items", 0.0178, 0.9728, 0.8166),
        ("ml-100k", 0.5970, 0.3993, 0.1531),
    ],
)
def test_the_50_most_recent(what_if: Any, name: str, users_cut: float, events_kept: float, padding: float) -> None:
    found = what_if(name, "--strategy", "pad_recent", "--max-length", "50")
    record = found["by_key"]["pad_recent"]
    assert round(record["sequences_truncated"] / found["lengths"]["sequences"], 4) == users_cut
    assert round(record["kept_events"] / found["lengths"]["events"], 4) == events_kept
    assert record["kept_events"] + record["events_lost"] == found["lengths"]["events"]
    assert round(record["padding_ratio"], 4) == padding


QUANTILE_EDGES = {
    "cdnow": [1, 2, 4, 9],
    "household-lines": [116, 293, 543, 977, 1752],
    "basket-items": [1, 3, 7, 15, 35],
    "ml-100k": [29, 50, 93, 172, 311],
}


@pytest.mark.parametrize(
    ("name", "padding", "events_kept"),
    [
        ("cdnow", 0.1349, 0.8697),
        ("household-lines", 0.2339, 0.9467),
        ("basket-items", 0.2474, 0.9217),
        ("ml-100k", 0.2220, 0.9571),
    ],
)
def test_quantile_edges_cut_at_the_last_one(what_if: Any, name: str, padding: float, events_kept: float) -> None:
    found = what_if(name, "--quantiles", ".2,.4,.6,.8,.95", "--overflow", "truncate")
    assert found["bucket_edges"] == QUANTILE_EDGES[name]
    for key in ("bucket_rows", "bucket_budget"):
        record = found["by_key"][key]
        assert round(record["padding_ratio"], 4) == padding
        assert round(record["kept_events"] / found["lengths"]["events"], 4) == events_kept


@pytest.mark.parametrize("name", PRESETS)
def test_quantile_edges_dropping_above_the_last_one(what_if: Any, name: str) -> None:
    found = what_if(name, "--quantiles", ".2,.4,.6,.8,.95", "--overflow", "drop", "--strategy", "bucket_rows")
    assert found["bucket_edges"] == QUANTILE_EDGES[name]
    record, lengths, edges = found["by_key"]["bucket_rows"], preset(name).expand(), np.array(QUANTILE_EDGES[name])
    kept = lengths[lengths <= edges[-1]].astype(np.int64)
    slots = int(edges[np.searchsorted(edges, kept)].sum())
    assert (record["sequences_dropped"], record["sequences_truncated"]) == (lengths.size - kept.size, 0)
    assert (record["kept_events"], record["slots"]) == (int(kept.sum()), slots)
    assert record["padding_ratio"] == pytest.approx(1 - kept.sum() / slots, abs=1e-12)


OPTIMAL = {
    "cdnow": ([1, 2, 4, 7, 13, 26, 62, 217], 0.1846),
    "household-lines": ([128, 336, 562, 868, 1273, 1808, 2717, 4193], 0.2069),
    "basket-items": ([2, 6, 12, 20, 31, 47, 74, 161], 0.2332),
    "ml-100k": ([35, 66, 112, 168, 236, 307, 414, 737], 0.1810),
}
OCTILES = {
    "cdnow": ([1, 2, 3, 5, 217], 0.8968),
    "household-lines": ([67, 164, 267, 407, 586, 848, 1233, 4193], 0.3858),
    "basket-items": ([1, 2, 3, 5, 7, 12, 21, 161], 0.6299),
    "ml-100k": ([24, 33, 47, 65, 102, 148, 225, 737], 0.3793),
}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(("by", "table"), [("optimal", OPTIMAL), ("quantile", OCTILES)], ids=["optimal", "octiles"])
def test_eight_buckets(what_if: Any, name: str, by: str, table: dict[str, tuple[list[int], float]]) -> None:
    found = what_if(name, "--edges-by", by, "--buckets", "8")
    edges, padding = table[name]
    assert found["bucket_edges"] == edges
    for key in ("bucket_rows", "bucket_budget"):
        assert round(found["by_key"][key]["padding_ratio"], 4) == padding
        assert found["by_key"][key]["events_lost"] == 0


@pytest.mark.parametrize("name", PRESETS)
def test_optimal_edges_and_eight_buckets_are_the_default(what_if: Any, name: str) -> None:
    assert what_if(name)["bucket_edges"] == OPTIMAL[name][0]


@pytest.mark.parametrize(
    ("name", "padding"),
    [("cdnow", 0.9310), ("household-lines", 0.8253), ("basket-items", 0.8816), ("ml-100k", 0.8269)],
)
def test_pad_batch_is_the_exact_expectation(what_if: Any, name: str, padding: float) -> None:
    record = what_if(name, "--strategy", "pad_batch", "--rows", "256")["by_key"]["pad_batch"]
    assert round(record["padding_ratio"], 4) == padding
    assert record["provenance"]["padding_ratio"] == "exact"
    assert record["reason"]["padding_ratio"].startswith("exact expectation over shuffles")


# --- the JSON

FIELDS = [
    "strategy", "policy", "padding_ratio", "slots", "kept_events", "events_lost", "sequences_truncated",
    "sequences_dropped", "batches", "shapes", "ghost_rows", "largest_batch_slots", "packs", "launches", "kernels",
    "peak_bytes", "time_s", "utilization", "provenance", "reason", "packing",
    "step_s", "useful_s", "padding_s", "gap_s", "bound", "fits",
]  # fmt: skip


def test_the_json_has_the_stable_fields(what_if: Any) -> None:
    found = what_if("ml-100k")
    assert [record["strategy"] for record in found["strategies"]] == [str(s) for s in Strategy]
    assert list(found["lengths"]) == ["sequences", "events", "max", "mean", "distinct"]
    for record in found["strategies"]:
        assert set(record) - {"batches_over_budget"} == set(FIELDS)


def test_every_number_has_an_origin_and_every_null_a_reason(what_if: Any) -> None:
    for record in what_if("ml-100k")["strategies"]:
        figures = {name: v for name, v in record.items() if name not in ("strategy", "policy", "provenance", "reason")}
        present = {name for name, value in figures.items() if value is not None}
        assert set(record["provenance"]) == present
        assert set(record["provenance"].values()) <= {"exact", "modelled"}
        assert set(figures) - present <= set(record["reason"])
        modelled = {name for name, origin in record["provenance"].items() if origin == "modelled"}
        assert modelled <= set(record["reason"])


def test_the_policy_of_the_json_makes_the_batches_of_the_json(what_if: Any) -> None:
    lengths = preset("ml-100k").expand()
    for record in what_if("ml-100k", "--length-multiple", "8")["strategies"]:
        plan = plan_epoch(lengths, BatchPolicy(**record["policy"]))
        if record["provenance"]["batches"] == "exact":
            assert plan.batches == record["batches"]
        if record["strategy"] not in ("pad_batch", "jagged"):
            assert (plan.slots, plan.padding_ratio) == (record["slots"], record["padding_ratio"])


# --- options


def test_strategies_are_those_asked_for_in_that_order(what_if: Any) -> None:
    assert list(what_if("cdnow", "--strategy", "jagged", "--strategy", "pad_max")["by_key"]) == ["jagged", "pad_max"]


def test_every_option_reaches_the_policies_that_use_it(what_if: Any) -> None:
    options = {
        "rows": 32, "token_budget": 3000, "max_rows": 99, "max_length": 200, "overflow": "truncate",
        "oversize": "single_row", "pad_to": "batch_max", "row_multiple": 2, "length_multiple": 8,
        "capacity": 120, "max_sequences_per_pack": 5,
    }  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    found = what_if("ml-100k", *words, "--edges", "40, 100,150")
    assert found["bucket_edges"] == [40, 100, 150]
    for record in found["strategies"]:
        policy = BatchPolicy(**record["policy"])
        for name, value in options.items():
            if name in policy.spec.fields and (name, policy.strategy) != ("pad_to", Strategy.BUCKET_GRAPH):
                assert getattr(policy, name) == value, (policy.strategy, name)


def test_quantiles_of_the_p95_rule(what_if: Any) -> None:
    policy = what_if("ml-100k", "--edges-by", "quantile_p95", "--strategy", "bucket_rows")["strategies"][0]["policy"]
    assert policy["bucket_edges"][-1] == 737
    assert policy["bucket_widths"][-1] < 737


def test_lengths_from_files_of_every_kind(what_if: Any, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("length,count\n1,2\n5,1\n")
    (tmp_path / "events.csv").write_text("who,item\nann,1\nbob,1\nann,2\n")
    (tmp_path / "people.csv").write_text("who\nann\nbob\ncid\n")
    np.save(tmp_path / "l.npy", np.array([4, 4, 0]))
    people = str(tmp_path / "people.csv")
    for arguments, sequences, events in (
        (["h.csv"], 3, 7),
        (["l.npy"], 3, 8),
        (["events.csv", "--user", "who"], 2, 3),
        (["events.csv", "--user", "who", "--users", people], 3, 3),
    ):
        lengths = what_if(str(tmp_path / arguments[0]), *arguments[1:])["lengths"]
        assert (lengths["sequences"], lengths["events"]) == (sequences, events), arguments


# --- a tuned file


def tuned_file(folder: Path, **settings: Any) -> str:
    policy = BatchPolicy("bucket_budget", **{"bucket_edges": (50, 150, 737), "token_budget": 5000, **settings})
    return str(TunedConfig.from_policy(preset("ml-100k"), policy).save(folder / "tuned.json"))


def test_a_tuned_file_brings_its_histogram_its_edges_and_its_settings(what_if: Any, tmp_path: Path) -> None:
    path = tuned_file(tmp_path, length_multiple=4, drop_last=True)
    tuned = TunedConfig.load(path)
    found = what_if(path)
    assert found["lengths"]["events"] == 100_000
    assert found["bucket_edges"] == [50, 150, 737]
    record = found["by_key"]["bucket_budget"]
    assert BatchPolicy(**record["policy"]) == tuned.batch_policy
    assert record["padding_ratio"] == tuned.figures["padding_ratio"].value
    assert found["by_key"]["jagged"]["policy"]["token_budget"] == 5000
    assert found["by_key"]["pad_max"]["policy"]["rows"] == 256


def test_options_win_over_a_tuned_file(what_if: Any, tmp_path: Path) -> None:
    path = tuned_file(tmp_path)
    assert what_if(path, "--token-budget", "9000")["by_key"]["bucket_budget"]["policy"]["token_budget"] == 9000
    assert what_if(path, "--token-budget", "9000")["bucket_edges"] == [50, 150, 737]
    assert what_if(path, "--buckets", "8")["bucket_edges"] == OPTIMAL["ml-100k"][0]
    assert what_if(path, "--edges", "737")["bucket_edges"] == [737]


# --- the table


def test_the_table_shows_data_edges_strategies_marks_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "cdnow", "--edges-by", "quantile"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "23,570 sequences, 69,659 events: mean 2.96, P50 1, P95 9, P99 20, max 217"
    assert lines[1] == "bucket edges 1, 2, 3, 5, 217 (quantile)"
    rows = {line.split()[0]: line for line in lines[4 : 4 + len(Strategy)]}
    assert list(rows) == [str(s) for s in Strategy]
    assert len({len(line) for line in lines[3 : 4 + len(Strategy)]}) == 1  # aligned
    assert "89.68%" in rows["bucket_budget"]
    assert " ~" in rows["jagged"]
    assert "~" not in rows["pad_max"]
    assert "no mark: exact, arithmetic on these lengths;  ~ modelled" in lines
    assert "8 buckets asked, 5 left: equal edges and empty buckets are merged." in lines
    # the 23,570 customers in packs as long as the longest, and what one of them is of a pack
    assert lines[-1].startswith("packed: 322 packs of 23,570 pieces, at most 0 % above the fewest possible (322); the")


def test_packs_of_a_given_capacity(what_if: Any) -> None:
    # 100,000 events in 334 packs of 300 at the least; the 53 users with more are cut into pieces, not one event is lost
    record = what_if("ml-100k", "--strategy", "packed", "--capacity", "300", "--overflow", "split")["by_key"]["packed"]
    assert (record["packs"], record["slots"], record["events_lost"]) == (335, 335 * 300, 0)
    assert record["packing"]["lower_bound"] == 334
    assert 0 < record["packing"]["largest_user_share_mean"] < record["packing"]["largest_user_share_max"] == 1
    assert record["provenance"]["packing"] == "exact"


def test_splitting_is_what_packs_do_and_the_others_cut_nothing(what_if: Any) -> None:
    found = what_if("ml-100k", "--capacity", "300", "--overflow", "split")["by_key"]
    assert found["packed"]["policy"]["overflow"] == "split"
    assert found["bucket_rows"]["policy"]["overflow"] == "error"
    assert {record["events_lost"] for key, record in found.items() if key != "pad_recent"} == {0}


def test_users_cut_and_events_lost_are_shown_together(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = preset("ml-100k").expand()
    cut, lost = int((lengths > 50).sum()), int(np.maximum(lengths - 50, 0).sum())
    assert (cut, lost) == (563, 60_071)
    assert main(["what-if", "ml-100k", "--strategy", "pad_recent", "--max-length", "50"]) == 0
    assert "563 (59.7 %)         0  60,071 (60.1 %)" in capsys.readouterr().out


def test_rows_above_the_budget_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--token-budget", "500", "--oversize", "single_row", "--strategy", "bucket_budget"]
    assert main(["what-if", "ml-100k", *options]) == 0
    # the last bucket, of width 737, holds all that are longer than 414
    many = int((preset("ml-100k").expand() > 414).sum())
    assert capsys.readouterr().out.endswith(
        f"bucket_budget: {many} batches of a single row are above the token budget 500\n"
    )
