"""Every item on the CPU, as far as it goes there: the same code, small sizes, the clock of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labkit.gpu.catalog import KERNELS
from labkit.gpu_check.command import check
from labkit.gpu_check.items import sanitizer
from labkit.gpu_check.items.op_calls import OPS
from labkit.gpu_check.items.order import ITEMS
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.ragged_data import Law, drawn_lengths
from labkit.gpu_check.report import Report
from tests.gpu_check.processes import ended
from tests.gpu_check.small import SMALL, small_lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    made = small_lab(tmp_path_factory.mktemp("run"))
    assert check(ITEMS, made, 1000.0) == 0
    return made


def cases(lab: Lab, item: str) -> dict[str, Any]:
    return {case["case"]: case for case in lab.report.cases(item)}


def test_every_case_held_or_says_why_it_does_not_exist_here(lab: Lab) -> None:
    data = Report.resumed(lab.report.path).data
    assert [entry["item"] for entry in data["items"]] == [item.key for item in ITEMS]
    for entry in data["items"]:
        assert (entry["status"], entry["not_reached"]) == ("done", [])
        assert entry["cases"]
        for case in entry["cases"]:
            assert case["ok"] is True or case["reason"], case
    assert data["finished"]


def test_only_what_needs_a_gpu_does_not_exist_here(lab: Lab) -> None:
    absent = {
        (entry["item"], case["case"]) for entry in lab.report.data["items"] for case in entry["cases"] if not case["ok"]
    }
    trials = {("kernels", f"trials of {op}") for op in KERNELS}
    assert trials <= absent
    assert {item for item, _ in absent - trials} == {"compile", "gauges", "sanitizer"}


def test_ops_have_times_floors_and_peers(lab: Lab) -> None:
    found = cases(lab, "ops")
    assert set(found) == {f"{op}, {law}" for op in OPS for law in Law}
    for case in found.values():
        assert case["median_s"] > 0
        assert case["n"] == SMALL.most_repeats
        assert case["share_of_copy"] == pytest.approx(case["floor_bytes"] / _copy_rate(lab) / case["median_s"])
        assert all("median_s" in peer or peer["reason"] for peer in case["peers"].values())
        assert case["best_peer_s"] == min(p["median_s"] for p in case["peers"].values() if "median_s" in p)
    # (T + B) * D floats and B + 1 offsets
    case = found["segment_sum, zipf"]
    assert case["floor_bytes"] == (case["events"] + case["rows"]) * SMALL.dim * 4 + (case["rows"] + 1) * 8
    assert lab.report.data["bars"] == []  # times of a CPU reach no bar of a kernel, and miss none


def _copy_rate(lab: Lab) -> float:
    rate: float = cases(lab, "bandwidth")["copy"]["bytes_per_s"]
    return rate


def test_every_op_was_compared_with_a_peer_before_the_clock_started(lab: Lab) -> None:
    for case in cases(lab, "ops").values():
        assert bool(case["compared_with"]) == OPS[case["op"]].is_like_peers, case["case"]
    assert "sum of padded" in cases(lab, "ops")["segment_sum, zipf"]["compared_with"]
    assert "pad and mask" in cases(lab, "ops")["attention_pool, uniform"]["compared_with"]


def test_strategies_count_real_events_and_the_cost_model_is_held_against_them(lab: Lab) -> None:
    measured, modelled = cases(lab, "strategies"), cases(lab, "cost_model")
    assert set(measured) == set(modelled)
    assert {"segmented", "jagged", "pad_max", "packed", "sparse", "bucket_graph"} <= set(measured)
    for name, case in measured.items():
        assert case["events_per_s"] > 0
        assert case["policy"]["strategy"] == name
        assert modelled[name]["ratio"]["peak_bytes"] == pytest.approx(1, abs=0.02)
        assert modelled[name]["ratio"]["step_s"] is None  # for which GPU?


def test_graphs_replay_every_bucket_with_the_weights_of_eager(lab: Lab) -> None:
    found = cases(lab, "graphs")
    assert len(found) >= 4
    for name, case in found.items():
        assert name == f"{case['rows']} rows of {case['width']} slots"
        assert case["speedup"] == pytest.approx(case["eager"]["median_s"] / case["replay"]["median_s"])


def test_thresholds_name_the_best_of_all_that_were_tried(lab: Lab) -> None:
    for case in cases(lab, "thresholds").values():
        assert case["best"] == min(case["tried"], key=lambda entry: entry["median_s"])
        assert case["is_whole"]
        assert len(case["tried"]) > 6
        assert case["tried"][0]["thresholds"] == case["chosen"]["thresholds"]
        assert any(entry["thresholds"][1] > 512 for entry in case["tried"])


def test_lengths_follow_their_law() -> None:
    zipf, uniform = (drawn_lengths(law, 200_000, 4096) for law in Law)
    assert (zipf.min(), zipf.max(), uniform.min(), uniform.max()) == (1, 4096, 1, 4096)
    assert uniform.mean() == pytest.approx(2048.5, rel=0.01)
    # P(1) is 1 over the sum of n**-1.2 up to 4096, 4.644
    assert (zipf == 1).mean() == pytest.approx(1 / 4.644, rel=0.02)


# --- compute-sanitizer


def test_a_clean_run_of_the_sanitizer_and_one_with_errors() -> None:
    assert sanitizer.judged(0, "========= ERROR SUMMARY: 0 errors") == {"errors": 0}
    assert sanitizer.judged(0, "========= RACECHECK SUMMARY: 0 hazards displayed") == {"errors": 0}
    errors = "========= COMPUTE-SANITIZER\n========= Invalid __global__ read\n=========     at row 3\n"
    with pytest.raises(AssertionError, match="2 errors: Invalid __global__ read; at row 3"):
        sanitizer.judged(9, errors + "========= ERROR SUMMARY: 2 errors")
    with pytest.raises(AssertionError, match="failed with exit code 1: AssertionError: trial"):
        sanitizer.judged(1, "========= ERROR SUMMARY: 0 errors\nAssertionError: trial")


def test_a_sanitizer_that_did_not_run_says_so() -> None:
    found = sanitizer.judged(255, "Unable to find injection library\n")
    assert (found["ok"], found["reason"]) == (None, "no summary, exit code 255: Unable to find injection library")


def program(folder: Path, text: str) -> str:
    """A program of the shell."""
    made = folder / "compute-sanitizer"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return str(made)


def test_the_command_of_the_sanitizer(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    text = f'echo "$* $PYTORCH_NO_CUDA_MEMORY_CACHING" >> {asked}; echo "========= ERROR SUMMARY: 0 errors"'
    monkeypatch.setattr(sanitizer, "sanitizer", lambda: program(tmp_path, text))
    monkeypatch.setattr(Lab, "on_gpu", True)
    found = [case.run() for case in sanitizer.cases(lab)]
    lines = asked.read_text().splitlines()
    assert found == [{"errors": 0}] * 4
    assert [line.split()[1] for line in lines] == ["memcheck", "racecheck", "synccheck", "initcheck"]
    # torch's allocator keeps blocks: a write beyond a tensor would stay inside of one
    assert all(line.endswith("-m labkit.gpu_check.small_run cpu 1") for line in lines)


def test_a_sanitizer_that_hangs_ends_with_the_program_that_it_watches(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = tmp_path / "watched"
    text = f"sleep 600 &\necho $! > {watched}.new; mv {watched}.new {watched}; wait"
    monkeypatch.setattr(sanitizer, "sanitizer", lambda: program(tmp_path, text))
    monkeypatch.setattr(Lab, "on_gpu", True)
    monkeypatch.setattr(sanitizer, "_PATIENCE_S", 2.0)
    case = sanitizer.cases(lab)[0].run()
    assert (case["ok"], case["reason"]) == (None, "memcheck took more than the 2 s that were left for it")
    assert ended(int(watched.read_text()))
