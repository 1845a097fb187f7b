"""Paths at the command line that the system refuses, that are in the way, or that are not there: one exact line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import polars as pl
import pytest
from nbformat import v4

from labkit.cli import main
from labkit.config import TunedConfig

LONG = "x" * 300
CUT = "x" * 60 + "..."


def events(folder: Path) -> None:
    pl.DataFrame({"user_id": [1, 1, 2]}).write_parquet(folder / "ev.parquet")
    (folder / "ok.csv").write_text("1,2\n3,4\n")
    nbformat.write(v4.new_notebook(), folder / "n.ipynb")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"what-if {LONG}.csv", f"cannot read '{CUT}': File name too long."),
        (f"what-if {LONG}.json", f"cannot read '{CUT}': File name too long."),
        (f"what-if {LONG}.npy", f"cannot read '{CUT}': File name too long."),
        (f"what-if {LONG}", f"cannot read '{CUT}': File name too long."),
        (f"what-if ev.parquet --user user_id --users {LONG}.csv", f"cannot read '{CUT}': File name too long."),
        (f"tune ok.csv --out {LONG}.json", f"cannot write '{CUT}': File name too long."),
        (f"tune ok.csv --out {'x' * 252}.json", f"cannot write '{CUT}': File name too long."),
        (f"tune ok.csv --out {LONG}/t.json", f"cannot write '{CUT}': File name too long."),
        (f"run {LONG}.ipynb --out out", f"cannot read '{CUT}': File name too long."),
        (f"run n.ipynb --out {LONG}", f"cannot make folder '{CUT}': File name too long."),
    ],
)
def test_names_too_long(complaint: Any, words: str, message: str) -> None:
    assert complaint(words, events) == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("what-if s/ok.npy", "cannot read 's/ok.npy': Permission denied."),
        ("what-if s/ok.csv", "cannot read 's/ok.csv': Permission denied."),
        ("what-if s/t.json", "cannot read 's/t.json': Permission denied."),
        ("what-if s/ev.parquet --user user_id", "cannot read 's/ev.parquet': Permission denied."),
        ("what-if s/ev.csv --user user_id", "cannot read 's/ev.csv': Permission denied."),
        ("what-if ev.parquet --users s/u.parquet", "cannot read 's/u.parquet': Permission denied."),
        ("tune ok.csv --out s/t.json", "cannot write 's/t.json': Permission denied."),
        ("tune s/ok.csv --out t.json", "cannot read 's/ok.csv': Permission denied."),
        ("run s/n.ipynb --out out", "cannot read 's/n.ipynb': Permission denied."),
        ("run n.ipynb --out s/out", "cannot make folder '{folder}/s/out': Permission denied."),
    ],
)
def test_folders_that_must_not_be_looked_into(
    complaint: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, message: str
) -> None:
    (tmp_path / "s").mkdir()
    for name in ("stat", "open", "mkdir"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name), {"s", str(tmp_path / "s")}))
    found = complaint(words, events)
    assert found == message.format(folder=tmp_path).replace(f"{tmp_path}/", "")


def refusing(real: Any, folders: set[str]) -> Any:
    """A method of Path that the system refuses in some folders, as it does for all but root in those of mode 000."""

    def method(self: Path, *words: Any, **named: Any) -> Any:
        if str(self.parent) in folders:
            raise PermissionError(13, "Permission denied")
        return real(self, *words, **named)

    return method


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tune ok.csv --out ok.csv", "'ok.csv' is there and is no tuned configuration, so it is not overwritten: "),
        ("tune no.csv --out ok.csv", "'ok.csv' is there and is no tuned configuration, so it is not overwritten: "),
        ("tune ok.csv --out ev.parquet", "'ev.parquet' is there and is no tuned configuration, so it is not "),
        ("tune ok.csv --out n.ipynb", "'n.ipynb' is there and is no tuned configuration, so it is not overwritten: "),
        (
            "what-if no*.parquet",
            "no file matches 'no*.parquet': check the pattern, which starts from the current folder.",
        ),
        ("what-if ev.parquet --user=", "'user' is empty: name the column of the event table that holds the user, or "),
        ("what-if ev.parquet --users=", "file not found: ''. Check the path, from folder '"),
    ],
)
def test_files_in_the_way_and_files_that_are_not_named(complaint: Any, words: str, message: str) -> None:
    assert complaint(words, events).startswith(message)


def test_a_folder_with_the_ending_of_a_file(complaint: Any) -> None:
    message = "'adir.csv' is a folder without Parquet files: pass a file, or a pattern such as 'adir.csv/*.csv'."
    assert complaint("what-if adir.csv", lambda folder: (folder / "adir.csv").mkdir()) == message


def test_a_tuned_file_is_replaced_by_a_tune_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["tune", "cdnow", "--out=~/t.json"]) == 0
    assert main(["tune", "~/t.json", "--out=~/t.json", "--max-buckets", "2"]) == 0
    assert len(TunedConfig.load(tmp_path / "t.json").batch_policy.bucket_edges or ()) == 2


def test_users_who_are_not_listed_are_a_note_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    events(tmp_path)
    pl.DataFrame({"user_id": [3, 1]}).write_parquet("u.parquet")
    assert main(["what-if", "ev.parquet", "--users", "u.parquet", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["lengths"]["sequences"] == 3
    assert captured.err == (
        "labkit: note: 1 user with events is not in the users table, and counted all the same: add them to it if it "
        "should list everyone.\n"
    )
