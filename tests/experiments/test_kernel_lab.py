"""Notebook 04's experiment: what it refuses, what it finds, what it says where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labkit.cost.devices import gpu
from labkit.errors import DataFileError, GpuError, KernelLaunchError, LabkitError, MissingPackageError, PolicyError
from labkit.experiments import kernel_job, kernel_time
from labkit.experiments.kernel_child import KernelRun
from labkit.experiments.kernel_job import KernelJob, proof_from_json, run_job
from labkit.experiments.kernel_lab import Config, run
from labkit.experiments.kernel_sources import opened_sources, shipped_sources, sources_on_disk
from labkit.experiments.kernel_time import time_kernel
from labkit.experiments.kernel_workload import Workload
from labkit.gpu.catalog import KERNELS, kernel_folder
from labkit.gpu.launch_config import LaunchConfig
from tests.experiments.test_recorded import report, write

BIN = shipped_sources("bin_rows")
BARRIER = "  __syncthreads();\n"


def without_barrier(text: str) -> str:
    assert BARRIER in text
    return text.replace(BARRIER, "", 1)


# -- sources


def test_the_sources_of_an_op_are_its_file_and_the_headers() -> None:
    assert list(BIN) == ["bin_rows.cu", "rows.cuh"]
    assert list(shipped_sources("jagged_to_padded")) == ["jagged_to_padded.cu", "units.cuh"]


def test_a_source_of_the_users_goes_under_the_shipped_name_with_headers_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text(BIN["bin_rows.cu"] + "// mine")
    (tmp_path / "rows.cuh").write_text("// my header")
    found = opened_sources("bin_rows", tmp_path / "mine.cu")
    assert found == {"bin_rows.cu": BIN["bin_rows.cu"] + "// mine", "rows.cuh": "// my header"}
    with sources_on_disk("bin_rows", found) as path:
        assert {p.name: p.read_text() for p in path.parent.iterdir()} == found
    assert not path.exists()


# -- what is refused before anything is read


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"op": "sort"}, KernelLaunchError, f"no op 'sort': expected one of {', '.join(KERNELS)}"),
        ({"dim": 0}, PolicyError, "dim must be"),
        ({"dim": 513}, PolicyError, "dim must be"),
        ({"counted_rows": 0}, PolicyError, "counted_rows must be"),
        ({"timed_rows": -1}, PolicyError, "timed_rows must be"),
        ({"gpu": "H1000"}, GpuError, "'H1000' is not in the table"),
        ({"preset": "nope"}, DataFileError, "nope"),
        ({"alpha": 1.0}, LabkitError, "alpha"),
    ],
    ids=str,
)
def test_what_could_not_be_right_is_refused(setting: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Config(**setting)  # type: ignore[arg-type]


def test_files_that_are_not_there_are_refused_before_the_kernel_starts(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"nowhere\.cu"):
        Config(source_file=str(tmp_path / "nowhere.cu")).check_files()
    with pytest.raises(DataFileError, match=r"nowhere\.csv"):
        Config(lengths_file="nowhere.csv").check_files()


# -- what is found


def test_the_shipped_source_is_proved_and_its_json_is_whole() -> None:
    result = run(Config(op="bin_rows", preset="cdnow", counted_rows=40, timed_rows=100))
    assert result.finding.startswith("bin_rows.cu as bin_rows is proved on ")
    assert result.answer is not None
    assert result.answer.reports == ()
    data = json.loads(json.dumps(result.as_json, allow_nan=False))
    assert data["proof"]["ok"] is True
    assert data["counts"]["provenance"] == "modelled"
    assert data["counts"]["parts"][0]["rows"] == 40
    assert sum(share["sequences"] for share in data["regimes"]["shares"]) == result.histogram.sequences
    assert data["time"]["floor_s"] == pytest.approx(100 * 12 / gpu("H100").bandwidth_bytes_per_s)
    assert data["time"]["provenance"]["floor_s"] == "modelled"
    assert proof_from_json(data["proof"]) == result.answer.proof


def test_a_dropped_barrier_is_reported_at_the_lines_that_race(tmp_path: Path) -> None:
    text = without_barrier(BIN["bin_rows.cu"])
    (tmp_path / "mine.cu").write_text(text)
    config = Config(op="bin_rows", source_file=str(tmp_path / "mine.cu"), counted_rows=40, timed_rows=100)
    result = run(config)
    assert result.answer is not None
    races = [report for report in result.answer.reports if report.kind == "race"]
    assert races
    assert all(report.file in ("bin_rows.cu", "rows.cuh") and report.line for report in races)
    lines = [text.splitlines()[report.line - 1] for report in races if report.file == "bin_rows.cu" and report.line]
    assert any("count[threadIdx.x] = 0;" in line for line in lines)  # before the barrier that is gone
    assert any("atomicAdd(&count[" in line for line in lines)  # after it
    assert "is NOT proved" in result.finding


def test_what_does_not_compile_is_not_counted() -> None:
    broken = {**BIN, "bin_rows.cu": BIN["bin_rows.cu"].replace("constexpr int", "constexpr imt", 1)}
    answer = run_job(KernelJob("bin_rows", broken, lengths=(1, 2)))
    assert answer.counts is None
    assert {report.kind for report in answer.reports} == {"compile"}


def test_a_missing_compiler_is_the_results_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise MissingPackageError("no g++ here: sudo apt-get install g++")

    monkeypatch.setattr(kernel_job, "prove", missing)
    result = run(Config(op="bin_rows", counted_rows=10, timed_rows=10))
    assert (result.answer, result.problem) == (None, "no g++ here: sudo apt-get install g++")
    assert "sudo apt-get install g++" in result.finding
    assert result.as_json["proof"] is None
    assert result.regimes


# -- in a child


def test_a_child_gives_the_same_answer_and_tells_its_stages() -> None:
    job = KernelJob("bin_rows", BIN, lengths=(0, 3, 40), dim=8, thresholds=(4, 8, 16), proof=False)
    told: list[tuple[str, int, int]] = []
    assert KernelRun(job).run(lambda *how: told.append(how)) == run_job(job)
    assert told == [("counts on your lengths", 1, 1)]


def test_an_error_of_the_child_is_raised_here() -> None:
    with pytest.raises(KernelLaunchError, match="there is no op 'sort'"):
        KernelRun(KernelJob("sort", BIN)).run()


def test_a_cancelled_run_gives_nothing() -> None:
    run = KernelRun(KernelJob("bin_rows", BIN))
    assert run.run(lambda *_: run.cancel()) is None
    assert run.run() is None


# -- time


def small(op: str = "segment_pool") -> Workload:
    return Workload(op, np.array([1, 2, 3]), 8, LaunchConfig())


@pytest.mark.skipif(__import__("torch").cuda.is_available(), reason="there is a GPU, so there is a time")
def test_without_a_gpu_the_time_is_null_with_the_reason(tmp_path: Path) -> None:
    time = time_kernel(small(), gpu("T4"), tmp_path)
    assert time.time_s.value is None
    assert "labkit doctor" in (time.time_s.reason or "")
    assert time.floor_s.value == small().floor_bytes / 320e9
    assert time.recorded == ()


def test_a_recorded_run_is_shown_as_recorded(tmp_path: Path) -> None:
    write(tmp_path, "run.json", report())
    name, lengths = next(iter(kernel_time.recorded_runs(tmp_path)[0].op_times()))
    assert name == "segment_sum"
    (one, *_) = time_kernel(small(), gpu("T4"), tmp_path).recorded
    assert one.lengths == lengths
    assert one.time_s.origin == "recorded"
    assert "commit" in (one.time_s.reason or "")
    assert time_kernel(small("bin_rows"), gpu("T4"), tmp_path).recorded == ()


def test_the_compared_kernel_is_shipped() -> None:
    assert (kernel_folder() / "compared" / "thread_per_sequence.cu").is_file()
