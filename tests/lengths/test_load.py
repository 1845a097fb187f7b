"""load_lengths tells presets, files, tables and arrays apart; .npy files are mapped and never unpickled."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labkit.errors import DataFileError, LengthsError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.load import load_lengths, read_lengths_npy
from labkit.lengths.presets import preset

EXPECTED = LengthHistogram(np.array([1, 3]), np.array([1, 1]))
KINDS = "a histogram CSV 'length,count', an .npy of lengths, or an event table (Parquet or CSV) with its user column"
PRESETS = "cdnow, household-lines, basket-items, ml-100k, industrial_20m"


def refusal(source: Any, **arguments: Any) -> str:
    with pytest.raises((DataFileError, LengthsError)) as refused:
        load_lengths(source, **arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_every_source_of_the_same_lengths_gives_the_same_histogram(tmp_path: Path) -> None:
    events = {"user_id": ["a", "b", "a", "a"]}
    (tmp_path / "h.csv").write_text("1,1\n3,1\n")
    (tmp_path / "e.csv").write_text("user_id\na\nb\na\na\n")
    np.save(tmp_path / "l.npy", np.array([3, 1]))
    pq.write_table(pa.table(events), tmp_path / "e.parquet")
    assert load_lengths(tmp_path / "h.csv") == EXPECTED
    assert load_lengths(str(tmp_path / "h.csv")) == EXPECTED
    assert load_lengths(tmp_path / "e.csv", user="user_id") == EXPECTED
    assert load_lengths(tmp_path / "l.npy") == EXPECTED
    assert load_lengths(tmp_path / "e.parquet") == EXPECTED
    assert load_lengths(tmp_path) == EXPECTED
    assert load_lengths(f"{tmp_path}/*.parquet") == EXPECTED
    for frame in (pd.DataFrame(events), pl.DataFrame(events), pl.LazyFrame(events), pa.table(events)):
        assert load_lengths(frame) == EXPECTED
    for lengths in ([3, 1], np.array([1, 3]), pd.Series([3, 1]), pl.Series([3, 1]), pa.array([3, 1])):
        assert load_lengths(lengths) == EXPECTED


def test_a_histogram_comes_back_as_it_is() -> None:
    assert load_lengths(EXPECTED) is EXPECTED


def test_a_preset_is_found_by_name() -> None:
    assert load_lengths("ML_100k") == preset("ml-100k")


def test_users_and_their_column_reach_the_event_table() -> None:
    histogram = load_lengths(pa.table({"who": [1, 1]}), user="who", users=pa.table({"who": [1, 2]}))
    assert histogram == LengthHistogram(np.array([0, 2]), np.array([1, 1]))


@pytest.mark.parametrize(("name", "near"), [("cdnw", "cdnow"), ("ml100k", "ml-100k"), ("industrial", "industrial_20m")])
def test_a_near_miss_of_a_preset_is_named(name: str, near: str) -> None:
    assert refusal(name) == (
        f"no preset and no file '{name}': did you mean '{near}'? presets are {PRESETS}; or pass {KINDS}."
    )


@pytest.mark.parametrize("name", ["nothing-like-it", "no/such/file.csv", "none.npy", ""])
def test_what_does_not_exist_is_refused_with_what_does(name: str) -> None:
    assert refusal(name) == f"no preset and no file '{name}': presets are {PRESETS}; or pass {KINDS}."


def test_a_missing_parquet_file_is_refused() -> None:
    assert refusal("none.parquet") == f"file not found: 'none.parquet'. Check the path, from folder '{Path.cwd()}'."


def test_json_says_where_it_is_read() -> None:
    assert refusal("tuned.json") == (
        "'tuned.json' is a JSON file, and lengths are not read from JSON here: load a tuned configuration with "
        "TunedConfig.load, whose histogram is its lengths."
    )


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.docx").touch()
    assert refusal(tmp_path / "x.docx") == (
        f"cannot tell what '{tmp_path / 'x.docx'}' is by its ending '.docx': pass {KINDS}."
    )


@pytest.mark.parametrize(
    ("source", "kind"), [(None, "NoneType"), (5, "int"), ({1: 2}, "dict"), ([[1], [1, 2]], "list")], ids=str
)
def test_a_value_of_another_kind_is_refused(source: Any, kind: str) -> None:
    assert refusal(source) == f"cannot read lengths from a value of type {kind}: pass a preset's name, {KINDS}."


def test_a_user_column_that_would_be_ignored_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("1,1\n")
    end = "is none: leave it out."
    assert refusal("cdnow", user="u") == f"'user' is for event tables (one row an event), and preset 'cdnow' {end}"
    assert refusal([1], users=[1]) == f"'users' is for event tables (one row an event), and a value of type list {end}"
    assert refusal(tmp_path / "h.csv", users=[1]) == (
        f"'users' is for event tables (one row an event), and histogram '{tmp_path / 'h.csv'}' {end}"
    )


def test_a_user_column_without_a_name_is_not_the_default(tmp_path: Path) -> None:
    for source in ("cdnow", [1], pa.table({"user_id": [1]}), "none.parquet"):
        assert refusal(source, user="") == (
            "'user' is empty: name the column of the event table that holds the user, or leave it out."
        )


def test_a_long_pattern_or_address_is_no_name_too_long() -> None:
    pattern = "{" + "a,b" * 100 + "}*.parquet"
    assert refusal(pattern) == (
        f"no file matches '{pattern}': check the pattern, which starts from the current folder."
    )
    assert refusal("x" * 300 + ".csv") == f"cannot read '{'x' * 300}.csv': File name too long."


# --- .npy


def test_an_npy_is_mapped_and_read_only(tmp_path: Path) -> None:
    np.save(tmp_path / "l.npy", np.array([3, 1], dtype=np.int32))
    lengths = read_lengths_npy(tmp_path / "l.npy")
    assert isinstance(lengths.base, np.memmap)
    assert not lengths.flags.writeable
    assert lengths.dtype == np.int32
    np.testing.assert_array_equal(lengths, [3, 1])


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_no_file_is_ever_unpickled(tmp_path: Path) -> None:
    mark = tmp_path / "exploded"
    path = tmp_path / "l.npy"
    np.save(path, np.array([Bomb(mark)]), allow_pickle=True)
    assert refusal(path) == f"'{path}' holds Python objects, which are never unpickled: save the lengths as integers."
    path.write_bytes(pickle.dumps(Bomb(mark)))
    assert refusal(path) == f"'{path}' is not an .npy file: write one array of lengths with np.save."
    assert not mark.exists()
    pickle.loads(path.read_bytes())
    assert mark.exists()  # the bomb works


def test_a_damaged_npy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.npy"
    np.save(path, np.arange(1000))
    whole = path.read_bytes()
    for size in range(6, len(whole), 37):
        path.write_bytes(whole[:size])
        assert refusal(path).startswith(f"'{path}' is damaged: ")
        assert refusal(path).endswith(". Write it again with np.save.")
    path.write_bytes(whole.replace(b"'descr'", b"'crash'"))
    assert refusal(path).startswith(f"'{path}' is damaged: ")
    path.write_bytes(b"")
    assert refusal(path) == f"'{path}' is not an .npy file: write one array of lengths with np.save."


def test_an_npz_and_a_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.npy"
    with path.open("wb") as file:
        np.savez(file, lengths=[1, 2])
    assert refusal(path) == f"'{path}' is an .npz archive: write one array of lengths with np.save."
    with pytest.raises(DataFileError) as folder:
        read_lengths_npy(tmp_path)
    assert str(folder.value) == f"cannot read '{tmp_path}': Is a directory."
    with pytest.raises(DataFileError) as missing:
        read_lengths_npy(tmp_path / "no.npy")
    assert str(missing.value) == (
        f"file not found: '{tmp_path / 'no.npy'}'. Check the path, from folder '{Path.cwd()}'."
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 3), int), " must be one-dimensional: got shape (2, 3). Pass one length per sequence."),
        (np.array(3), " must be one-dimensional: got shape (). Pass one length per sequence."),
        (np.zeros(0, int), " are empty: at least one sequence is needed."),
        (np.array([1, -2]), "[1] = -2 is negative; a sequence has 0 events or more. Fix or filter the input."),
        (np.array([1.5]), "[0] = 1.5 is not a whole number. Fix or filter the input."),
        (np.array(["a"]), " must be whole numbers: got dtype <U1. Convert them to integers first."),
    ],
    ids=["2-D", "0-D", "empty", "negative", "fractional", "text"],
)
def test_an_npy_of_something_else_is_refused(tmp_path: Path, array: np.ndarray[Any, Any], message: str) -> None:
    path = tmp_path / "l.npy"
    np.save(path, array)
    assert refusal(path) == f"lengths in '{path}'{message}"
