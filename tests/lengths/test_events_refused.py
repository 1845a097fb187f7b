"""Event tables that cannot be counted: each gets one line with the numbers and the fix."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labkit.errors import DataFileError, LabkitError, LengthsError, MissingPackageError
from labkit.lengths.events import count_events


def parquet(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (pa.table({"user_id": [1, None, None]}), "2 rows"),
        (pd.DataFrame({"user_id": [1.0, np.nan]}), "1 row"),
        (pl.DataFrame({"user_id": [1.0, float("nan"), None]}), "2 rows"),
        (pd.DataFrame({"user_id": ["a", None]}), "1 row"),
    ],
    ids=["null", "pandas nan", "polars nan and null", "text"],
)
def test_rows_without_a_user_are_refused_with_their_number(table: Any, rows: str) -> None:
    end = f"has no value in 'user_id' for {rows}: filter them out, or give them an id of their own."
    with pytest.raises(LengthsError) as events:
        count_events(table)
    assert str(events.value) == f"the event table {end}"
    with pytest.raises(LengthsError) as users:
        count_events(table.dropna() if isinstance(table, pd.DataFrame) else table[:1], users=table)
    assert str(users.value) == f"the users table {end}"


def test_an_empty_field_of_a_csv_is_a_missing_user(tmp_path: Path) -> None:
    with pytest.raises(LengthsError, match="no value in 'user_id' for 2 rows"):
        count_events(text(tmp_path / "e.csv", 'user_id,v\na,1\n,2\n"",3\n'))


def test_a_file_of_a_glob_without_the_column_is_refused(tmp_path: Path) -> None:
    text(tmp_path / "1.csv", "user_id,v\na,b\n")
    text(tmp_path / "2.csv", "user,v\na,b\n")
    with pytest.raises(LengthsError, match="no value in 'user_id' for 1 row"):
        count_events(f"{tmp_path}/*.csv")
    parquet(tmp_path / "1.parquet", user_id=[1])
    parquet(tmp_path / "2.parquet", user=[1])
    with pytest.raises(DataFileError, match="user_id"):
        count_events(f"{tmp_path}/*.parquet")


def tables_without_the_column(tmp_path: Path) -> Iterator[Any]:
    yield parquet(tmp_path / "e.parquet", user=[1], item=[2])
    yield text(tmp_path / "e.csv", "user,item\n1,2\n")
    yield pd.DataFrame({"user": [1], "item": [2]})
    yield pl.LazyFrame({"user": [1], "item": [2]})
    yield pa.table({"user": [1], "item": [2]})


def test_a_missing_column_is_refused_with_those_there_are(tmp_path: Path) -> None:
    for table in tables_without_the_column(tmp_path):
        with pytest.raises(LengthsError) as events:
            count_events(table)
        end = "it has 'user', 'item'. Name the column that holds the user."
        assert str(events.value) == f"no column 'user_id' in the event table: {end}"
        with pytest.raises(LengthsError) as users:
            count_events(pa.table({"user_id": [1]}), users=table)
        assert str(users.value) == f"no column 'user_id' in the users table: {end}"


def test_a_column_given_twice_is_refused() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["user_id", "user_id"])
    with pytest.raises(LengthsError) as refused:
        count_events(frame)
    assert str(refused.value).startswith("more than one column 'user_id' in the event table: it has 'user_id', ")


@pytest.mark.parametrize("rows", ["1,2\n3\n", "1,2\n3,4,5\n"], ids=["short", "long"])
def test_ragged_lines_are_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(LengthsError) as early:
        count_events(text(tmp_path / "e.csv", f"user_id,v\n{rows}"))
    assert str(early.value) == (
        "no column 'user_id' in the event table: it has 'user_id,v'. Its lines do not all have as many fields as the "
        "first one: mend the file."
    )
    with pytest.raises(DataFileError, match=r"CSV Error on Line: 60003 .*Expected Number of Columns: 2") as late:
        count_events(text(tmp_path / "e.csv", "user_id,v\n" + "7,1\n" * 60_000 + rows))
    assert "\n" not in str(late.value)


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    for table in (pa.table({"user_id": pa.array([], pa.int64())}), text(tmp_path / "e.csv", "user_id,v\n")):
        with pytest.raises(LengthsError) as refused:
            count_events(table)
        assert str(refused.value) == (
            "the event table has no rows: at least one event, or a table of users, is needed."
        )


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    cases = {
        tmp_path / "no.parquet": (
            f"file not found: '{tmp_path / 'no.parquet'}'. Check the path, from folder '{Path.cwd()}'."
        ),
        f"{tmp_path}/no*.parquet": (
            f"no file matches '{tmp_path}/no*.parquet': check the pattern, which starts from the current folder."
        ),
        text(tmp_path / "bad.parquet", "this is no Parquet file at all"): (
            f"'{tmp_path / 'bad.parquet'}' is no Parquet file: write it again, or name it by what it is "
            "(.csv, .tsv, .txt)."
        ),
        text(tmp_path / "tiny.parquet", "PAR1PAR1"): (
            f"'{tmp_path / 'tiny.parquet'}' is cut short: write it again, or name it by what it is (.csv, .tsv, .txt)."
        ),
        text(tmp_path / "e.csv", ""): (
            f"'{tmp_path / 'e.csv'}' is empty: an event table has a header line and one row an event."
        ),
        text(tmp_path / "e.xlsx", "x"): (
            f"cannot tell what '{tmp_path / 'e.xlsx'}' is: an event table ends in .parquet, .pq, .parq, .csv, .tsv, "
            ".txt (CSV also with .gz or .zst)."
        ),
    }
    for table, message in cases.items():
        with pytest.raises(DataFileError) as refused:
            count_events(table)
        assert str(refused.value) == message


def test_a_folder_without_parquet_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError) as refused:
        count_events(tmp_path)
    assert str(refused.value) == (
        f"'{tmp_path}' is a folder without Parquet files: pass a file, or a pattern such as '{tmp_path}/*.csv'."
    )


def test_what_duckdb_cannot_read_is_named_with_a_fix(tmp_path: Path) -> None:
    path = parquet(tmp_path / "e.parquet", user_id=[1, 2])
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * (len(content) - 12) + content[-8:])  # both marks, and nothing between them
    with pytest.raises(DataFileError) as refused:
        count_events(path)
    assert str(refused.value).startswith("cannot read this table: ")
    assert str(refused.value).endswith(". Mend the file that it names, or write it again.")


def test_a_folder_that_must_not_be_read_is_not_called_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if path == str(tmp_path):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(DataFileError) as refused:
        count_events(tmp_path)
    assert str(refused.value) == f"cannot read folder '{tmp_path}': Permission denied."


def test_no_folder_for_temporary_files_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    with pytest.raises(DataFileError) as refused:
        count_events(pa.table({"user_id": [1]}))
    assert str(refused.value) == (
        "no folder for temporary files: No usable temporary directory found. Name one that can be written to in TMPDIR."
    )


def test_something_else_than_a_table_is_refused() -> None:
    with pytest.raises(DataFileError) as refused:
        count_events([1, 2])
    assert str(refused.value) == (
        "cannot count events in a value of type list: pass a path (Parquet, CSV, a glob) or a pandas, polars or Arrow "
        "table with a column 'user_id'."
    )


def test_without_duckdb_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackageError) as refused:
        count_events(pa.table({"user_id": [1]}))
    assert str(refused.value) == "event tables are counted by DuckDB, which is not installed: pip install duckdb"
    assert isinstance(refused.value, LabkitError)
