"""Histogram files: what is read, and the one line that each kind of bad file gets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import DataFileError, LabkitError, LengthsError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.histogram_csv import read_histogram_csv


def read(tmp_path: Path, content: bytes) -> list[tuple[int, int]]:
    path = tmp_path / "h.csv"
    path.write_bytes(content)
    values, counts = read_histogram_csv(path)
    assert values.dtype == counts.dtype == np.int64
    return list(zip(values.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize(
    "content",
    [
        b"length,count\n0,3\n7,2\n",
        b"0,3\n7,2",
        b"length,count\r\n0,3\r\n7,2\r\n",
        b"length,count\r0,3\r7,2\r",
        b"\xef\xbb\xbflength,count\n0,3\n7,2\n",
        b"\xef\xbb\xbf0,3\n7,2\n",
        b" Length , COUNT \n 0 , 3 \n\t7,2\n",
        b"\n\nlength,count\n0,3\n\n7,2\n  \n\n\n",
        b'"length","count"\n"0","3"\n"7", "2"\n',
        b"length,count\n0.0,3.\n+7,2.00\n",
    ],
    ids=["header", "bare", "crlf", "cr", "bom", "bom bare", "spaces", "blank lines", "quotes", "whole floats"],
)
def test_every_way_to_write_the_same_histogram_reads_alike(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) == [(0, 3), (7, 2)]


def test_lines_keep_their_order_and_the_histogram_sorts_them(tmp_path: Path) -> None:
    assert read(tmp_path, b"9,1\n2,5\n") == [(9, 1), (2, 5)]
    assert LengthHistogram.from_csv(tmp_path / "h.csv") == LengthHistogram(np.array([2, 9]), np.array([5, 1]))


def test_the_bounds_themselves_are_legal(tmp_path: Path) -> None:
    content = f"0,{2**62}\n{2**31 - 1},1\n".encode()
    assert read(tmp_path, content) == [(0, 2**62), (2**31 - 1, 1)]


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(1, 2**62), min_size=1))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, histogram: dict[int, int]) -> None:
    content = "length,count\n" + "".join(f"{length},{count}\n" for length, count in histogram.items())
    assert dict(read(tmp_path_factory.mktemp("csv"), content.encode())) == histogram


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"user_id,item,ts\n1,2,3\n",
            (
                "{path}, line 1: expected the columns 'length', 'count'; got 'user_id', 'item', 'ts'. Rename them, or, "
                "for a table with one row an event, name the column of the user."
            ),
        ),
        (
            b"count,length\n1,2\n",
            (
                "{path}, line 1: expected the columns 'length', 'count'; got 'count', 'length'. Rename them, or, for a "
                "table with one row an event, name the column of the user."
            ),
        ),
        (
            b"1,many\n2,3\n",
            (
                "{path}, line 1: expected the columns 'length', 'count'; got '1', 'many'. Rename them, or, for a table "
                "with one row an event, name the column of the user."
            ),
        ),
        (
            b"length,count\n1,2\n3\n",
            "{path}, line 3: expected 2 fields, length and count, separated by a comma; got 1 in '3'.",
        ),
        (
            b"1,2,3\n",
            "{path}, line 1: expected 2 fields, length and count, separated by a comma; got 3 in '1,2,3'.",
        ),
        (
            b"length,count\n1;2\n",
            "{path}, line 2: expected 2 fields, length and count, separated by a comma; got 1 in '1;2'.",
        ),
        (b"1,2\n\nx,4\n", "{path}, line 3: length 'x' is not a number; expected a whole number of 0 or more."),
        (b"1,2\n5,\n", "{path}, line 2: count '' is not a number; expected a whole number of 1 or more."),
        (b"1,2\n1_0,4\n", "{path}, line 2: length '1_0' is not written in the digits 0-9 alone; "),
        (b"1,2\n1e3,4\n", "{path}, line 2: length '1e3' is not written in the digits 0-9 alone; "),
        ("1,2\n١,4\n".encode(), "{path}, line 2: length '١' is not written in the digits 0-9 alone; "),
        (b"1,2\nx" + b"y" * 500 + b",4\n", "{path}, line 2: length 'x" + "y" * 58 + "...' is not a number; "),
        (b"1,2\n2.5,4\n", "{path}, line 2: length '2.5' is fractional or not finite; "),
        (b"1,2\n3,nan\n", "{path}, line 2: count 'nan' is fractional or not finite; "),
        (
            b"1,2\n3,0\n",
            "{path}, line 2: count 0 is below 1; leave the line out where nobody has that length.",
        ),
        (
            b"length,count\n3,-8\n",
            "{path}, line 2: count -8 is below 1; leave the line out where nobody has that length.",
        ),
        (b"-4,1\n", "{path}, line 1: length -4 is below 0; a sequence has 0 events or more."),
        (
            b"2147483648,1\n",
            "{path}, line 1: length 2147483648 is above 2147483647; expected 0 .. 2147483647.",
        ),
        (b"1,4611686018427387905\n", "{path}, line 1: count 4611686018427387905 is above 4611686018427387904; "),
        (b"1," + b"9" * 5000 + b"\n", "{path}, line 1: count has 5000 digits; expected 1 .. 4611686018427387904."),
        (
            b"length,count\n7,1\n8,1\n7,2\n",
            "{path}, line 4: length 7 was given before, in line 2; give each length once, with its total count.",
        ),
        (b"", "{path} is empty: expected at least one line 'length,count', such as '1,11908'."),
        (b"\n \n", "{path} is empty: expected at least one line 'length,count', such as '1,11908'."),
        (
            b"length,count\n",
            "{path} is only a header: expected at least one line 'length,count', such as '1,11908'.",
        ),
        (b'1,2\n"3,4\n', "{path}, line 3: not valid CSV (unexpected end of data). Check the quotes."),
    ],
)
def test_a_bad_file_gets_one_line_with_the_place_and_the_fix(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(LengthsError) as refused:
        read(tmp_path, content)
    text = str(refused.value)
    expected = message.format(path=tmp_path / "h.csv")
    assert text == expected or (message.endswith("; ") and text.startswith(expected))
    assert "\n" not in text


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"length,count\n1,\xe9\n", "byte 15 is 0xe9"),
        (b"PAR1\x00\x00", "byte 4 is 0x00"),
        ("length,count\n1,2\n".encode("utf-16"), "byte 0 is 0xff"),
        (b"\x1f\x8b\x08\x00", "byte 1 is 0x8b"),
    ],
    ids=["latin-1", "parquet", "utf-16", "gzip"],
)
def test_a_file_that_is_not_text_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(DataFileError) as refused:
        read(tmp_path, content)
    assert str(refused.value) == (
        f"'{tmp_path / 'h.csv'}' is not UTF-8 text ({why}): a histogram is a CSV file 'length,count'; save it as UTF-8."
    )


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError) as missing:
        read_histogram_csv(tmp_path / "no.csv")
    assert str(missing.value) == (
        f"file not found: '{tmp_path / 'no.csv'}'. Check the path, from folder '{Path.cwd()}'."
    )
    with pytest.raises(LabkitError) as folder:
        read_histogram_csv(tmp_path)
    assert str(folder.value) == f"cannot read '{tmp_path}': Is a directory."
