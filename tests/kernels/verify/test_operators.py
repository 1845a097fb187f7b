"""Where mutations are found, and what each of them does: on a source small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labkit.errors import DataFileError
from labkit.gpu.host.build import build
from labkit.gpu.verify.hunt import Hunted, shard
from labkit.gpu.verify.mutate import Known, known_survivors, main, summary, summary_text
from labkit.gpu.verify.schemata import ASK_WHO_IS_REACHED, CHOSEN, Mutant, mutants_of

SOURCE = """
// a comment with i < n, if (true) and __syncthreads();
#define FACTOR 2
template <typename T, int V>
struct Pack { T x[V]; };

extern "C" __global__ void halves(float* out, const float* in, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = 0.f;
  __syncthreads();
  if (i < n) tile[i] = in[i];
  __syncthreads();
  float total = 0.f;
  for (int k = 0; k < 2; ++k) total += tile[(i + k) % 4];
  out[i] = fmaxf(total, 3.f);
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "halves.cu"
    file.write_text(SOURCE)
    return file


def described(path: Path) -> list[tuple[int, str, str]]:
    return [(mutant.line, mutant.operator, mutant.change) for mutant in mutants_of(path)[0]]


def test_every_place_is_found_and_nothing_in_comments_templates_and_declarations(path: Path) -> None:
    assert described(path) == [
        (10, "index", "index + 1"),
        (10, "identity", "0.f becomes 1.f"),
        (11, "barrier", "__syncthreads dropped"),
        (12, "guard", "guard removed: condition always true"),
        (12, "relation", "< becomes <="),
        (12, "bound", "bound - 1"),
        (12, "index", "index + 1"),
        (12, "index", "index + 1"),
        (13, "barrier", "__syncthreads dropped"),
        (14, "identity", "0.f becomes 1.f"),
        (15, "identity", "starts with one more"),
        (15, "relation", "< becomes <="),
        (15, "bound", "bound - 1"),
        (15, "stride", "step of 1 becomes 2"),
        (15, "stride", "+= dropped"),
        (15, "index", "index + 1"),
        (16, "index", "index + 1"),
        (16, "swap", "fmaxf becomes fminf"),
    ]
    assert [mutant.nth for mutant in mutants_of(path)[0] if mutant.change == "index + 1"] == [0, 0, 1, 0, 0]


def results(path: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> tuple[list[float], str]:
    program = build(path, ["halves"], source=mutants_of(path)[1], cache=path.parent / "cache")
    monkeypatch.setenv(CHOSEN, number)
    out = np.zeros(5, np.float32)
    run = program.launch("halves", (1,), (4,), (out, np.array([1, 2, 3, 4, 9], np.float32), np.int32(3)))
    return out[:4].tolist(), run.printed


def test_one_build_holds_the_source_and_each_mutant(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = [3.0, 5.0, 3.0, 3.0]  # 1+2, 2+3, 3+0, 0+1 and at least 3
    assert results(path, monkeypatch, "0") == (right, "")
    numbers = {f"{place[1]} {place[2]} {place[0]}": str(n) for n, place in enumerate(described(path), 1)}
    expected = {
        "guard guard removed: condition always true 12": [3.0, 5.0, 7.0, 5.0],
        "relation < becomes <= 12": [3.0, 5.0, 7.0, 5.0],
        "bound bound - 1 12": [3.0, 3.0, 3.0, 3.0],
        "identity 0.f becomes 1.f 14": [4.0, 6.0, 4.0, 3.0],
        "identity starts with one more 15": [3.0, 3.0, 3.0, 3.0],
        "relation < becomes <= 15": [6.0, 5.0, 4.0, 3.0],
        "stride += dropped 15": [3.0, 3.0, 3.0, 3.0],
        "swap fmaxf becomes fminf 16": [3.0, 3.0, 3.0, 1.0],
    }
    assert {name: results(path, monkeypatch, numbers[name])[0] for name in expected} == expected


def test_a_program_says_which_places_it_reaches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(SOURCE.replace("fmaxf(total, 3.f)", "n > 3 ? fmaxf(total, 3.f) : total"))
    names = {n: place[1] for n, place in enumerate(described(path), 1)}
    reached = {names[int(n)] for n in results(path, monkeypatch, ASK_WHO_IS_REACHED)[1].split()}
    assert reached == set(names.values()) - {"swap"}


def test_a_shard_is_the_same_whatever_else_there_is() -> None:
    keys = [("a.cu", f"x[{i}]", "index + 1", 0) for i in range(1000)]
    parts = [shard(keys, part, 4) for part in range(4)]
    assert sorted(key for part in parts for key in part) == sorted(keys)
    assert all(200 < len(part) < 300 for part in parts)
    assert shard(keys[::-1], 1, 4) == parts[1][::-1]


def outcome(number: int, caught: str | None, operator: str = "bound") -> Hunted:
    return Hunted(Mutant(number, "a.cu", number, operator, "bound - 1", f"line {number}", 0), "a", caught)


def test_shares_are_given_with_and_without_equivalents() -> None:
    outcomes = [
        outcome(1, "race"),
        outcome(2, "race"),
        outcome(3, None),
        outcome(4, None, "guard"),
        outcome(5, "crash"),
    ]
    known = {outcomes[2].mutant.key: Known(True, "Same."), outcomes[4].mutant.key: Known(False, "Once survived.")}
    found = summary(outcomes, known)
    assert (found["mutants"], found["caught"], found["survived"], found["equivalent"]) == (5, 3, 2, 1)
    assert (found["share_of_all"], found["share_without_equivalents"]) == (0.6, 0.75)
    assert found["caught_by"] == {"race": 2, "crash": 1}
    assert found["operators"] == {
        "bound": {"mutants": 4, "caught": 3, "equivalent": 1},
        "guard": {"mutants": 1, "caught": 0, "equivalent": 0},
    }
    text = summary_text(found)
    assert "caught: 60.0% of all, 75.0% without those that are equivalent" in text
    assert "survived: a.cu:4: bound - 1, in: line 4\n  nobody has said why" in text
    assert "listed as a survivor, but caught: a.cu:5: bound - 1" in text
    assert "line 3" not in text


def test_no_mutants_have_no_share() -> None:
    assert summary([], {})["share_of_all"] is None


def test_a_broken_list_of_survivors_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "survivors.json"
    with pytest.raises(DataFileError, match="is no list of survivors"):
        known_survivors(file)
    file.write_text(json.dumps([{"file": "a.cu"}]))
    with pytest.raises(DataFileError, match="is no list of survivors"):
        known_survivors(file)


def test_the_command_fails_when_a_survivor_is_listed_that_is_no_mutant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "survivors.json"
    row = {"file": "a.cu", "code": "x", "change": "bound - 1", "nth": 0, "equivalent": True, "reason": "Gone."}
    file.write_text(json.dumps([row]))
    out = tmp_path / "mutants.json"
    words = ["--survivors", str(file), "--shard", "5/4000", "--workers", "1", "--json", str(out)]
    assert main(words) == 1
    assert "listed as a survivor, but there is no such mutant: a.cu: bound - 1, in: x" in capsys.readouterr().out
    assert json.loads(out.read_text())["survivors"] == []
