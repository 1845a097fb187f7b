"""The command line as a program: version, help, exit codes, pipes, what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import labkit.cli.entry
from labkit.cli import main
from labkit.cli.options import joined_pairs
from labkit.errors import NotebookError

COMMANDS = ("doctor", "what-if", "tune", "score-edges", "convert", "run", "kernels", "check-kernel")
LABKIT = [sys.executable, "-c", "import sys; from labkit.cli import main; sys.exit(main())"]


def test_the_installed_command_is_this_one(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("labkit")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"labkit {version('labkit')}\n"


@pytest.mark.parametrize("words", [[], ["--help"]], ids=["nothing", "help"])
def test_help_lists_the_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_bad_input_is_one_unwrapped_line_however_narrow_the_terminal() -> None:
    environment = {**os.environ, "COLUMNS": "40"}
    done = subprocess.run(
        [*LABKIT, "what-if", "ml-100k", "--strategy", "x"], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_the_table_is_never_cut_and_has_no_colours_when_piped() -> None:
    environment = {**os.environ, "COLUMNS": "20", "FORCE_COLOR": "1"}
    done = subprocess.run(
        [*LABKIT, "what-if", "basket-items"], capture_output=True, text=True, env=environment, check=True
    )
    assert "25,091,528" in done.stdout  # slots of pad_max, 155 848 x 161
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout


@pytest.mark.parametrize("words", [["what-if", "cdnow"], ["doctor"], ["--help"], ["--version"]], ids=lambda w: w[0])
def test_a_closed_pipe_is_quiet(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*LABKIT, *words], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode != 0


def test_an_interruption_is_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("labkit.experiments.source.load_lengths", interrupt)
    assert main(["what-if", "cdnow"]) == labkit.cli.entry.INTERRUPTED == 130
    assert capsys.readouterr().err == ""


def test_a_fault_of_ours_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("labkit.experiments.source.load_lengths", fail)
    with pytest.raises(ZeroDivisionError):
        main(["what-if", "cdnow"])


# --- what it loads


def loaded_by(words: list[str], names: tuple[str, ...]) -> list[str]:
    code = (
        f"import sys; from labkit.cli import main; code = main({words!r}); import json\n"
        f"print(json.dumps([code, *[n for n in {names!r} if n in sys.modules]]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *found = json.loads(done.stderr)
    assert code == 0
    return [str(name) for name in found]


HEAVY = ("torch", "plotly", "jupyter_client", "papermill", "IPython", "cupy", "duckdb", "pandas")


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["what-if", "cdnow"], ["what-if", "cdnow", "--json"]])
def test_answers_about_lengths_load_nothing_heavy(words: list[str]) -> None:
    assert loaded_by(words, HEAVY) == []


def test_the_check_on_what_is_loaded_can_fail() -> None:
    assert loaded_by(["what-if", "cdnow"], ("numpy", *HEAVY)) == ["numpy"]


def test_tune_loads_nothing_heavy_either(tmp_path: Path) -> None:
    assert loaded_by(["tune", "cdnow", "--out", str(tmp_path / "t.json")], HEAVY) == []


# --- pairs


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        (["run", "n", "-p", "a", "-1.5", "--out", "d"], ["run", "n", "-p", "a=-1.5", "--out", "d"]),
        (["-p", "a=1", "-p", "b", ""], ["-p", "a=1", "-p", "b="]),
        (["-p", "name", "x=y"], ["-p", "name=x=y"]),
        (["-p"], ["-p"]),
        (["--", "-p", "a", "b"], ["--", "-p", "a", "b"]),
    ],
)
def test_a_name_and_its_value_are_joined(words: list[str], joined: list[str]) -> None:
    assert joined_pairs(words) == joined


def test_a_name_without_a_value_is_refused() -> None:
    with pytest.raises(NotebookError, match=r"^parameter 'rows' has no value: write -p NAME VALUE\.$"):
        joined_pairs(["run", "-p", "rows"])
