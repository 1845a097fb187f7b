"""The profilers' command lines: words that a shell takes as they are, filters that match the lab's own ranges."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import torch

from labkit.bench.ranges import ROOT as RANGE
from labkit.bench.ranges import nvtx_is_there, nvtx_range
from labkit.cli import main
from labkit.experiments.profile import Profile, profile, profile_report, profile_text
from labkit.experiments.profile_metrics import METRICS, SECTIONS

NOTEBOOK = Path(__file__).parents[2] / "notebooks/01_tune_buckets.ipynb"
RUN = ("labkit", "run", "my notebook.ipynb", "--out", "results/profile")


def lines(found: Profile) -> dict[str, list[str]]:
    return {" ".join(p.command[:2]): list(p.command) for p in found.profilers}


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_ncu_gets_the_metrics_the_sections_and_the_range() -> None:
    ncu = next(p.command for p in profile(RUN, "out", "report").profilers if p.tool == "ncu")
    words = list(ncu)
    assert after(words, "--target-processes") == "all"  # the kernel of the notebook, and the process that measures
    assert after(words, "--nvtx-include") == f"{RANGE}/"  # the slash says: a pushed range
    assert after(words, "--launch-count") == "50"
    assert after(words, "--metrics").split(",") == [metric.name for metric in METRICS]
    assert [words[i + 1] for i, word in enumerate(words) if word == "--section"] == list(SECTIONS)
    assert tuple(words[-len(RUN) :]) == RUN


def test_one_strategy_and_a_number_of_kernels() -> None:
    ncu = list(profile(RUN, "out", "report", strategy="bucket_graph", launches=7).profilers[-1].command)
    assert (after(ncu, "--nvtx-include"), after(ncu, "--launch-count")) == ("bucket_graph/", "7")


def test_the_filters_name_ranges_that_the_lab_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    pushed: list[str] = []
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", pushed.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: None)
    nvtx_is_there.cache_clear()
    with nvtx_range("bucket_graph", "forward"):
        pass
    nvtx_is_there.cache_clear()
    for strategy in (None, "bucket_graph"):
        ncu = list(profile(RUN, "out", "report", strategy=strategy).profilers[-1].command)
        assert after(ncu, "--nvtx-include").removesuffix("/") in pushed


def test_nsys_shows_graphs_node_by_node_and_its_tables_read_its_report() -> None:
    found = lines(profile(RUN, "out", "report"))
    assert {"--trace=cuda,nvtx,osrt", "--cuda-graph-trace=node", "--output=out/report"} <= set(found["nsys profile"])
    assert found["nsys stats"][-1] == "out/report.nsys-rep"
    assert "--report=nvtx_gpu_proj_sum,cuda_gpu_kern_sum,cuda_api_sum,cuda_gpu_mem_time_sum" in found["nsys stats"]


def test_the_metrics_that_matter_are_there_and_each_has_a_meaning() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__bytes.sum",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    } <= set(names)
    assert all(metric.meaning and re.fullmatch(r"[a-z0-9]+__[a-z0-9_.]+", metric.name) for metric in METRICS)


def test_the_text_can_be_pasted_into_a_shell() -> None:
    found = profile(RUN, "out dir", "report")
    pasted = profile_text(found).replace(" \\\n", " ").splitlines()
    for profiler in found.profilers:
        line = next(line for line in pasted if line.startswith(profiler.tool) and profiler.command[1] in line)
        assert tuple(shlex.split(line)) == profiler.command
    assert shlex.split(pasted[0]) == ["mkdir", "-p", "out dir"]


def test_a_tool_that_is_here_and_one_that_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "nsys"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = profile(RUN, "out", "report")
    assert [(p.tool, p.found, p.install is None) for p in found.profilers] == [
        ("nsys", str(tool), True),
        ("nsys", str(tool), True),
        ("ncu", None, False),
    ]
    assert "ncu: not on the PATH here; install: sudo apt-get install cuda-nsight-compute" in profile_text(found)


def test_the_json_has_words_and_lines() -> None:
    data = json.loads(json.dumps(profile_report(profile(RUN, "out", "report"))))
    assert set(data) == {"run", "prepare", "profilers", "metrics", "notes"}
    for profiler in data["profilers"]:
        assert shlex.split(profiler["line"]) == profiler["command"]


# --- the command


def test_a_notebook_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(NOTEBOOK), "-p", "lengths_file", "a b.csv", "--strategy", "jagged", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    run = data["run"]
    assert run[run.index("run") :] == [
        "run",
        str(NOTEBOOK),
        "-p",
        "lengths_file",
        "a b.csv",
        "--out",
        "results/profile",
    ]
    assert after(data["profilers"][-1]["command"], "--nvtx-include") == "jagged/"


def test_another_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--command", "labkit measure 'a b.csv'", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == ["labkit", "measure", "a b.csv"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["profile", "no.ipynb"], "no notebook 'no.ipynb'"),
        (["profile"], "give a NOTEBOOK or --command, one of the two."),
        (["profile", "no.ipynb", "--command", "x"], "give a NOTEBOOK or --command, one of the two."),
        (["profile", "--command", "x 'y"], "cannot be read: No closing quotation."),
        (["profile", "--command", " "], "--command is empty"),
        (["profile", "--command", "x", "-p", "a", "1"], "write them into --command."),
        (["profile", str(NOTEBOOK), "-p", "no_such", "1"], "no_such"),
        (["profile", str(NOTEBOOK), "--launch-count", "0"], "--launch-count"),
        (["profile", str(NOTEBOOK), "-p", "gpu", "NOPE"], "GPU 'NOPE' is not in the table: use one of V100-16,"),
        (["profile", str(NOTEBOOK), "-p", "rows", "0"], "rows must be 1 or more: got 0."),
        (
            ["profile", str(NOTEBOOK), "--strategy", "packd"],
            "Invalid value for '--strategy': 'packd' does not exist: use one of pad_max,",
        ),
    ],
)
def test_bad_input_is_one_line(complaint: object, words: list[str], said: str) -> None:
    assert said in complaint(words)  # type: ignore[operator]
