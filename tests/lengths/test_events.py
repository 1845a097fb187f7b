"""Events per user, counted by DuckDB: every kind of table, every kind of id, nothing lost in silence."""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import DataFileError, LabkitError, LengthsError, MissingPackageError
from labkit.lengths.events import count_events
from labkit.lengths.histogram import LengthHistogram


def counted(table: Any, **arguments: Any) -> dict[int, int]:
    values, counts = count_events(table, **arguments)
    assert values.dtype == counts.dtype == np.int64
    assert values.tolist() == sorted(values.tolist())
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def parquet(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


# user a has 3 events, b has 1
USERS = ["a", "b", "a", "a"]


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: pd.DataFrame({"user_id": ids, "value": 0}),
        lambda ids: pd.DataFrame({"user_id": pd.Categorical(ids)}),
        lambda ids: pd.DataFrame({"user_id": np.array(ids, dtype=object)}),
        lambda ids: pl.DataFrame({"user_id": ids}),
        lambda ids: pl.DataFrame({"user_id": ids}).lazy(),
        lambda ids: pa.table({"user_id": ids, "value": ids}),
        lambda ids: pa.table({"user_id": ids}).to_batches()[0],
        lambda ids: pads.dataset(pa.table({"user_id": ids})),
        lambda ids: pa.table({"user_id": ids}).to_reader(),
    ],
    ids=[
        "pandas", "pandas category", "pandas object", "polars", "polars lazy", "arrow", "arrow batch", "arrow dataset",
        "arrow reader",
    ],
)  # fmt: skip
def test_every_kind_of_frame_counts_alike(make: Callable[[list[str]], Any]) -> None:
    assert counted(make(USERS)) == {1: 1, 3: 1}


@pytest.mark.parametrize(
    "ids",
    [
        [7, -1, 7, 7],
        [2**62, 1, 2**62, 2**62],
        [0.5, 1.5, 0.5, 0.5],
        [True, False, True, True],
        [b"\x00", b"\x01", b"\x00", b"\x00"],
        ["", "b", "", ""],
        ["a'b\"c", "ü", "a'b\"c", "a'b\"c"],
    ],
    ids=str,
)
def test_every_type_of_id_counts_alike(tmp_path: Path, ids: list[Any]) -> None:
    assert counted(parquet(tmp_path / "e.parquet", user_id=ids)) == {1: 1, 3: 1}


@pytest.mark.parametrize("name", ["e.csv", "e.CSV", "e.txt", "it's [1] ü*?.csv", "e.csv.gz"])
def test_csv_files_count_whatever_their_name(tmp_path: Path, name: str) -> None:
    content = "user_id,value\n" + "".join(f"{user},x\n" for user in USERS)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    text(tmp_path / "it's 1 üXX.csv", "user_id\n" + "z\n" * 50)  # what the fourth name would match as a glob
    assert counted(path) == {1: 1, 3: 1}
    assert counted(str(path)) == {1: 1, 3: 1}


def test_zstd_csv_and_tab_separated_files_count(tmp_path: Path) -> None:
    packed = tmp_path / "e.csv.zst"
    duckdb.sql(f"COPY (SELECT unnest({USERS}) AS user_id) TO '{packed}' (HEADER, COMPRESSION zstd)")
    assert counted(packed) == {1: 1, 3: 1}
    assert counted(text(tmp_path / "e.tsv", "v\tuser_id\n1,5\ta\n2\tb\n3\ta\n4\ta\n")) == {1: 1, 3: 1}


def test_crlf_a_byte_order_mark_and_quoted_ids_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(b'\xef\xbb\xbfuser_id,v\r\n"a,1",0\r\nb,0\r\n"a,1",0\r\n\r\n')
    assert counted(path) == {1: 1, 2: 1}


def test_ids_of_a_csv_are_text_so_that_leading_zeros_count(tmp_path: Path) -> None:
    assert counted(text(tmp_path / "e.csv", "user_id\n007\n7\n7\n7.0\n")) == {1: 2, 2: 1}


def test_no_line_of_a_csv_is_taken_for_a_comment_or_a_preamble(tmp_path: Path) -> None:
    assert counted(text(tmp_path / "e.csv", "user_id,v\n#a,1\n#a,2\n'b,3\n")) == {1: 1, 2: 1}


def test_globs_and_folders_count_all_their_files(tmp_path: Path) -> None:
    (tmp_path / "day=2").mkdir()
    parquet(tmp_path / "one.parquet", user_id=["a", "b"])
    parquet(tmp_path / "day=2" / "two.parquet", user_id=["a", "a"])
    (tmp_path / "_SUCCESS").touch()
    assert counted(tmp_path) == {1: 1, 3: 1}
    assert counted(f"{tmp_path}/") == {1: 1, 3: 1}
    assert counted(f"{tmp_path}/*.parquet") == {1: 2}
    assert counted(f"{tmp_path}/**/*.parquet") == {1: 1, 3: 1}


def test_csv_files_of_a_glob_are_matched_by_the_name_of_their_columns(tmp_path: Path) -> None:
    text(tmp_path / "1.csv", "user_id,v\na,b\n")
    text(tmp_path / "2.csv", "v,user_id\nb,a\nb,a\n")
    assert counted(f"{tmp_path}/*.csv") == {3: 1}


@pytest.mark.parametrize("column", ["user", 'the "user"', "it's", "select", "ü ; --", "*"])
def test_a_column_of_any_name_is_quoted(tmp_path: Path, column: str) -> None:
    assert counted(parquet(tmp_path / "e.parquet", **{column: USERS, "v": USERS}), user=column) == {1: 1, 3: 1}
    assert counted(pd.DataFrame({column: USERS}), user=column) == {1: 1, 3: 1}


@given(st.lists(st.integers(0, 8), min_size=1, max_size=80), st.sets(st.integers(0, 12), min_size=1))
def test_the_histogram_is_the_count_of_counts(events: list[int], users: set[int]) -> None:
    per_user = Counter(events)
    assert counted(pa.table({"user_id": events})) == Counter(per_user.values())
    lengths = [per_user[user] for user in users | set(events)]
    table = pa.table({"user_id": sorted(users)})
    assert counted(pa.table({"user_id": events}), users=table) == Counter(lengths)
    histogram = LengthHistogram.from_events(pa.table({"user_id": events}), users=table)
    assert (histogram.sequences, histogram.events) == (len(lengths), len(events))


# --- case C2: the length pass reads the user column alone


class Untouchable:
    """A value that remembers whether anybody looked at it."""

    touched = False

    def __str__(self) -> str:
        type(self).touched = True
        return "touched"


def test_the_values_of_a_frame_are_never_touched() -> None:
    frame = pd.DataFrame({"user_id": USERS, "value": [Untouchable() for _ in USERS]})
    Untouchable.touched = False
    assert counted(frame) == {1: 1, 3: 1}
    assert not Untouchable.touched
    duckdb.connect().register("t", frame).execute("SELECT max(value) FROM t")
    assert Untouchable.touched  # the trap works


def test_the_other_columns_of_a_parquet_file_are_never_read(tmp_path: Path) -> None:
    path = parquet(tmp_path / "e.parquet", value=["x" * 4000 + str(i) for i in range(500)], user_id=[1] * 500)
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    assert counted(path) == {500: 1}
    with pytest.raises(duckdb.Error):  # the trap works
        duckdb.sql(f"SELECT sum(length(value)) FROM '{path}'").fetchall()


# --- a table of all users


def test_users_without_events_have_length_0_and_doubles_count_once(tmp_path: Path) -> None:
    users = pa.table({"user_id": ["c", "a", "d", "c", "b", "c"]})
    assert counted(parquet(tmp_path / "e.parquet", user_id=USERS), users=users) == {0: 2, 1: 1, 3: 1}


def test_a_user_with_events_who_is_not_listed_still_counts() -> None:
    assert counted(pa.table({"user_id": USERS}), users=pa.table({"user_id": ["a", "c"]})) == {0: 1, 1: 1, 3: 1}


def test_without_any_event_the_listed_users_are_all_of_length_0(tmp_path: Path) -> None:
    assert counted(text(tmp_path / "e.csv", "user_id\n"), users=pa.table({"user_id": ["a", "b"]})) == {0: 2}


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint64(), pa.string()])
def test_ids_of_two_kinds_meet_where_that_is_exact(tmp_path: Path, kind: pa.DataType) -> None:
    users = text(tmp_path / "u.csv", "user_id\n1\n2\n3\n")
    events = pa.table({"user_id": pa.array([1, 1, 2], pa.int64()).cast(kind)})
    assert counted(events, users=users) == {0: 1, 1: 1, 2: 1}
    assert counted(events, users=pa.table({"user_id": [1, 2, 3]})) == {0: 1, 1: 1, 2: 1}


def test_ids_that_cannot_be_matched_exactly_are_refused() -> None:
    with pytest.raises(LengthsError) as refused:
        counted(pa.table({"user_id": [1, 2]}), users=pa.table({"user_id": [1.0, 2.0]}))
    assert str(refused.value) == (
        "ids are BIGINT in the event table and DOUBLE in the users table: convert one column to the type of the other, "
        "so that equal users are equal."
    )


def test_ids_written_in_two_ways_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LengthsError) as refused:
        counted(pa.table({"user_id": [1, 2]}), users=text(tmp_path / "u.csv", "user_id\nu1\nu2\n"))
    assert str(refused.value) == (
        "no user of the event table (BIGINT) is in the users table (VARCHAR): write the ids of column 'user_id' the "
        "same way in both."
    )


# --- refusals


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
        counted(table)
    assert str(events.value) == f"the event table {end}"
    with pytest.raises(LengthsError) as users:
        counted(table.dropna() if isinstance(table, pd.DataFrame) else table[:1], users=table)
    assert str(users.value) == f"the users table {end}"


def test_an_empty_field_of_a_csv_is_a_missing_user(tmp_path: Path) -> None:
    with pytest.raises(LengthsError, match="no value in 'user_id' for 2 rows"):
        counted(text(tmp_path / "e.csv", 'user_id,v\na,1\n,2\n"",3\n'))


def test_a_file_of_a_glob_without_the_column_is_refused(tmp_path: Path) -> None:
    text(tmp_path / "1.csv", "user_id,v\na,b\n")
    text(tmp_path / "2.csv", "user,v\na,b\n")
    with pytest.raises(LengthsError, match="no value in 'user_id' for 1 row"):
        counted(f"{tmp_path}/*.csv")
    parquet(tmp_path / "1.parquet", user_id=[1])
    parquet(tmp_path / "2.parquet", user=[1])
    with pytest.raises(DataFileError, match="user_id"):
        counted(f"{tmp_path}/*.parquet")


def tables_without_the_column(tmp_path: Path) -> Iterator[Any]:
    yield parquet(tmp_path / "e.parquet", user=[1], item=[2])
    yield text(tmp_path / "e.csv", "user,item\n1,2\n")
    yield pd.DataFrame({"user": [1], "item": [2]})
    yield pl.LazyFrame({"user": [1], "item": [2]})
    yield pa.table({"user": [1], "item": [2]})


def test_a_missing_column_is_refused_with_those_there_are(tmp_path: Path) -> None:
    for table in tables_without_the_column(tmp_path):
        with pytest.raises(LengthsError) as events:
            counted(table)
        end = "it has 'user', 'item'. Name the column that holds the user."
        assert str(events.value) == f"no column 'user_id' in the event table: {end}"
        with pytest.raises(LengthsError) as users:
            counted(pa.table({"user_id": [1]}), users=table)
        assert str(users.value) == f"no column 'user_id' in the users table: {end}"


def test_a_column_given_twice_is_refused() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["user_id", "user_id"])
    with pytest.raises(LengthsError) as refused:
        counted(frame)
    assert str(refused.value).startswith("more than one column 'user_id' in the event table: it has 'user_id', ")


@pytest.mark.parametrize("rows", ["1,2\n3\n", "1,2\n3,4,5\n"], ids=["short", "long"])
def test_ragged_lines_are_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(LengthsError) as early:
        counted(text(tmp_path / "e.csv", f"user_id,v\n{rows}"))
    assert str(early.value) == (
        "no column 'user_id' in the event table: it has 'user_id,v'. Its lines do not all have as many fields as the "
        "first one: mend the file."
    )
    with pytest.raises(DataFileError, match=r"CSV Error on Line: 60003 .*Expected Number of Columns: 2") as late:
        counted(text(tmp_path / "e.csv", "user_id,v\n" + "7,1\n" * 60_000 + rows))
    assert "\n" not in str(late.value)


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    for table in (pa.table({"user_id": pa.array([], pa.int64())}), text(tmp_path / "e.csv", "user_id,v\n")):
        with pytest.raises(LengthsError) as refused:
            counted(table)
        assert str(refused.value) == (
            "the event table has no rows: at least one event, or a table of users, is needed."
        )


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    cases = {
        tmp_path / "no.parquet": (
            f"file not found: '{tmp_path / 'no.parquet'}'. Check the path, from folder '{Path.cwd()}'."
        ),
        f"{tmp_path}/no*.parquet": (
            f'DuckDB cannot read this table: IO Error: No files found that match the pattern "{tmp_path}/no*.parquet"'
        ),
        text(tmp_path / "bad.parquet", "this is no Parquet file at all"): (
            f"DuckDB cannot read this table: Invalid Input Error: No magic bytes found at end of file "
            f"'{tmp_path / 'bad.parquet'}'"
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
            counted(table)
        assert str(refused.value) == message


def test_a_folder_without_parquet_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError) as refused:
        counted(tmp_path)
    assert str(refused.value) == (
        f"no Parquet file in folder '{tmp_path}': pass a file, or a glob such as 'logs/*.csv'."
    )


def test_something_else_than_a_table_is_refused() -> None:
    with pytest.raises(DataFileError) as refused:
        counted([1, 2])
    assert str(refused.value) == (
        "cannot count events in a value of type list: pass a path (Parquet, CSV, a glob) or a pandas, polars or Arrow "
        "table with a column 'user_id'."
    )


def test_without_duckdb_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackageError) as refused:
        counted(pa.table({"user_id": [1]}))
    assert str(refused.value) == "event tables are counted by DuckDB, which is not installed: pip install duckdb"
    assert isinstance(refused.value, LabkitError)


def test_nothing_is_left_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counted(pa.table({"user_id": USERS}))
    assert list(tmp_path.iterdir()) == []
