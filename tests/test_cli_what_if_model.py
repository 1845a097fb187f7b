"""``labkit what-if --model --gpu``: what a model adds, what it does not take, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labkit.cli import main

OF_GPU = ("time_s", "step_s", "utilization", "useful_s", "padding_s", "gap_s", "bound")


@pytest.fixture
def strategies(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(words: str) -> dict[str, Any]:
        assert main(["what-if", "ml-100k", "--json", *words.split()]) == 0
        return {record["strategy"]: record for record in json.loads(capsys.readouterr().out)["strategies"]}

    return run


def test_a_model_on_a_gpu_fills_the_fields(strategies: Any) -> None:
    found = strategies("--model din --gpu H100 --strategy pad_max --strategy bucket_graph")
    padded, graph = found["pad_max"], found["bucket_graph"]
    for record in (padded, graph):
        assert record["useful_s"] + record["padding_s"] + record["gap_s"] == pytest.approx(record["time_s"])
        assert record["step_s"] * record["batches"] == pytest.approx(record["time_s"])
        assert 0 < record["utilization"] <= 1
        assert record["bound"] in ("compute", "bandwidth", "launch")
        for name in ("launches", "kernels", "peak_bytes", *OF_GPU):
            assert record["provenance"][name] == "modelled"
            assert record["reason"][name]
    # every kernel is a launch in eager mode, every batch one in a graph
    assert padded["launches"] == padded["kernels"] == 4 * (graph["kernels"] // 10)
    assert graph["launches"] == graph["batches"] == 10
    assert padded["peak_bytes"] > graph["peak_bytes"]


def test_without_a_gpu_there_is_no_time(strategies: Any) -> None:
    record = strategies("--model din --strategy jagged")["jagged"]
    assert record["launches"] == record["kernels"] > 0
    assert record["peak_bytes"] > 100_000 * 32 * 4  # the table alone
    for name in OF_GPU:
        assert (record[name], record["reason"][name]) == (None, "needs a GPU: --gpu NAME")
        assert name not in record["provenance"]


def test_without_a_model_there_is_nothing(strategies: Any) -> None:
    record = strategies("--strategy pad_max")["pad_max"]
    for name in ("launches", "kernels", "peak_bytes", *OF_GPU):
        assert (record[name], record["reason"][name]) == (None, "needs a model: lengths and a policy do not tell it")


def test_a_strategy_that_the_model_does_not_take_says_so_and_the_others_go_on(strategies: Any) -> None:
    found = strategies("--model gru4rec --gpu t4 --strategy rnn_packed --strategy jagged --strategy segmented")
    assert found["rnn_packed"]["time_s"] > 0
    assert found["jagged"]["time_s"] is None
    assert found["jagged"]["reason"]["time_s"].startswith("model gru4rec does not take the jagged layout of strategy")
    assert found["segmented"]["reason"]["kernels"].startswith("model gru4rec does not take the segmented layout")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--model gru4rec --strategy jagged",
            (
                "model gru4rec does not take the jagged layout of strategy jagged: use one of pad_max, pad_recent, "
                "pad_batch, bucket_rows, bucket_budget, bucket_graph, rnn_packed."
            ),
        ),
        (
            "--model din --gpu 4090",
            (
                "GPU '4090' is not in the table: use one of V100-16, V100-32, T4, A10, A100-40, A100-80, L4, L40S, "
                "H100, H100-PCIe, H200, B200."
            ),
        ),
        (
            "--model din --gpu H100 --precision bf16",
            ("precision bf16 is not modelled: the casts of mixed precision are not traced, choose float32 or tf32."),
        ),
        (
            "--model din --gpu T4 --precision tf32",
            "T4 has no tensor cores for tf32: choose one of float32, fp16.",
        ),
        (
            "--model din --precision tf32",
            "--precision tf32 says what a GPU computes in, and there is none: add --gpu NAME.",
        ),
        (
            "--inference",
            "--inference says what a model does, and there is none: add --model din|sasrec|gru4rec|pooled|ctr.",
        ),
        ("--gpu H100", "--gpu 'H100' needs a model to run there: add --model din|sasrec|gru4rec|pooled|ctr."),
        (
            "--model dinn",
            "Invalid value for '--model': 'dinn' does not exist: use one of din, sasrec, gru4rec, pooled, ctr.",
        ),
    ],
)
def test_refused_in_one_line(complaint: Any, words: str, message: str) -> None:
    assert complaint(f"what-if ml-100k {words}") == message


def test_what_has_no_room_on_the_gpu_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--model sasrec --gpu T4 --rows 4096 --strategy packed --strategy jagged"
    words = ["what-if", "industrial_20m", *asked.split()]
    assert main([*words, "--json"]) == 0
    found = {record["strategy"]: record for record in json.loads(capsys.readouterr().out)["strategies"]}
    assert {key: record["fits"] for key, record in found.items()} == {"packed": False, "jagged": True}
    assert found["packed"]["provenance"]["fits"] == "modelled"
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    marked = {line.split()[0]: "GB! " in line for line in lines if line.startswith(("packed ", "jagged "))}
    assert marked == {"packed": True, "jagged": False}
    said = "! does not fit: the peak of packed is above the 16.00 GB of T4; the time is as if it had more memory"
    assert said in lines


def test_rows_that_the_model_refuses_are_not_modelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lengths.csv"
    file.write_text("length,count\n10,100\n20000,1\n")
    words = "--model sasrec --gpu H100 --token-budget 30000 --rows 4 --json"
    assert main(["what-if", str(file), *words.split()]) == 0
    found = {record["strategy"]: record for record in json.loads(capsys.readouterr().out)["strategies"]}
    for key, what in (("pad_max", "width"), ("packed", "width of the packs"), ("jagged", "longest row")):
        assert found[key]["time_s"] is found[key]["peak_bytes"] is found[key]["fits"] is None
        assert found[key]["reason"]["time_s"].startswith(f"{what} 20000 is above max_positions 8192 of the model: ")
    assert found["pad_recent"]["time_s"] > 0


def test_the_json_says_what_was_modelled(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(words: str) -> dict[str, Any]:
        assert main(["what-if", "ml-100k", "--json", "--strategy", "pad_max", *words.split()]) == 0
        data: dict[str, Any] = json.loads(capsys.readouterr().out)
        return data

    names = ("model", "gpu", "mode", "precision")
    plain = answer("")
    assert [plain[name] for name in (*names, "overheads")] == [None] * 5
    trained = answer("--model din --gpu H100 --precision tf32")
    assert [trained[name] for name in names] == ["din", "H100", "train", "tf32"]
    assert trained["overheads"]["source"] == "assumed"
    forward = answer("--model din --gpu H100 --inference")
    assert [forward[name] for name in names] == ["din", "H100", "inference", "float32"]
    assert forward["strategies"][0]["kernels"] < trained["strategies"][0]["kernels"]


def test_the_table_has_the_modelled_columns(capsys: pytest.CaptureFixture[str]) -> None:
    words = "what-if ml-100k --model din --gpu L4 --strategy pad_max --strategy rnn_packed"
    assert main(words.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(line for line in lines if line.startswith("strategy"))
    assert header.split()[-6:] == ["time", "busy", "bound", "peak", "launches", "kernels"]
    assert next(line for line in lines if line.startswith("rnn_packed ")).split()[-6:] == ["-"] * 6
    assert next(line for line in lines if line.startswith("pad_max ")).count("~") == 6
    assert "modelled: din, training on L4, float32; overheads assumed" in lines
    assert sum(line.startswith("rnn_packed: model din does not take") for line in lines) == 1
