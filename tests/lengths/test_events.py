"""Events per user, counted by DuckDB: every kind of table, every kind of id, nothing lost in silence."""

from __future__ import annotations

import gzip
import re
import warnings
from collections import Counter
from collections.abc import Callable
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

from labkit.errors import LengthsError, LengthsWarning
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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert counted(pa.table({"user_id": events}), users=table) == Counter(lengths)
    unlisted = len(set(events) - users)
    assert [int(str(w.message).split()[0]) for w in caught] == ([unlisted] if unlisted else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LengthsWarning)
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
    line = (
        "1 user with events is not in the users table, and counted all the same: "
        "add them to it if it should list everyone."
    )
    with pytest.warns(LengthsWarning, match=f"^{re.escape(line)}$"):
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


def test_nothing_is_left_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counted(pa.table({"user_id": USERS}))
    assert list(tmp_path.iterdir()) == []
