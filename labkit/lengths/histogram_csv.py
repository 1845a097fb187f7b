"""Histogram files: ``length,count`` a line, read strictly, so that no line is lost or guessed at."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labkit.errors import DataFileError, LengthsError
from labkit.files import not_found, reason_of
from labkit.lengths.validate import MAX_LENGTH
from labkit.units import shown

_COLUMNS = ["length", "count"]
_MAX_COUNT = 2**62
_MAX_DIGITS = 100
_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")


def read_histogram_csv(path: str | os.PathLike[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read ``length,count`` lines, with or without that header.

        length,count
        1,11908                ->    values 1 2    counts 11908 4079
        2,4079

    A first line that is not all numbers is a header and must name exactly these two columns, in any case. Blank lines,
    spaces around fields, quotes, CRLF and a byte order mark are fine.

    Args:
        path: UTF-8 text, comma-separated.

    Returns:
        values (m,) int64 and counts (m,) int64, in the order of the file.

    Raises:
        DataFileError: missing or unreadable, or not UTF-8 text.
        LengthsError: other columns, a line that is not two fields, a length that is not a whole number within
            0 .. 2**31 - 1 or comes twice, a count that is not a whole number of 1 or more, no lines at all. The message
            has the line number and the text.

    Cost: O(m) of plain Python, about a microsecond a line.
    """
    path = Path(path)
    text = read_text(path)
    first_line: dict[int, int] = {}
    counts: list[int] = []
    header_seen = False
    for line, fields in _records(text, path):
        if not first_line and not header_seen and not all(map(_is_number, fields)):
            _check_header(fields, path)
            header_seen = True
            continue
        where = f"{path}, line {line}"
        if len(fields) != 2:
            raise LengthsError(
                f"{where}: expected 2 fields, length and count, separated by a comma; got {len(fields)} in "
                f"{shown(','.join(fields))}."
            )
        length = _whole(fields[0], "length", 0, MAX_LENGTH, where)
        count = _whole(fields[1], "count", 1, _MAX_COUNT, where)
        if length in first_line:
            raise LengthsError(
                f"{where}: length {length} was given before, in line {first_line[length]}; give each length once, "
                "with its total count."
            )
        first_line[length] = line
        counts.append(count)
    if not counts:
        have = "only a header" if header_seen else "empty"
        raise LengthsError(f"{path} is {have}: expected at least one line 'length,count', such as '1,11908'.")
    return np.array(list(first_line), dtype=np.int64), np.array(counts, dtype=np.int64)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without its byte order mark.

    Raises:
        DataFileError: missing or unreadable, or not UTF-8 text.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise not_found(path) from None
    except (OSError, ValueError) as error:
        raise DataFileError(f"cannot read {str(path)!r}: {reason_of(error)}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(_not_text(path, f"byte {error.start} is 0x{data[error.start]:02x}")) from None
    if "\0" in text:
        raise DataFileError(_not_text(path, f"byte {data.index(0)} is 0x00"))
    return text


def _not_text(path: Path, why: str) -> str:
    return f"{str(path)!r} is not UTF-8 text ({why}): a histogram is a CSV file 'length,count'; save it as UTF-8."


def _records(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and stripped fields of every line that is not blank."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    reader = csv.reader(lines, strict=True, skipinitialspace=True)
    try:
        for fields in reader:
            stripped = [field.strip() for field in fields]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error as error:
        raise LengthsError(f"{path}, line {reader.line_num}: not valid CSV ({error}). Check the quotes.") from None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _check_header(fields: list[str], path: Path) -> None:
    if [field.lower() for field in fields] != _COLUMNS:
        raise LengthsError(
            f"{path}, line 1: expected the columns 'length', 'count'; got {', '.join(map(shown, fields))}. Rename "
            "them, or, for a table with one row an event, name the column of the user."
        )


def _fault(field: str) -> str:
    """Why a field is no whole number."""
    if not _is_number(field):
        return "not a number"
    number = float(field)
    # 1e3, 1_0 and the digits of other scripts: Python would take them, other readers would not
    return "not written in the digits 0-9 alone" if number.is_integer() else "fractional or not finite"


def _whole(field: str, what: str, low: int, high: int, where: str) -> int:
    """The field as an integer within ``low .. high``; 5.0 is whole, as spreadsheets write it."""
    if not _WHOLE.fullmatch(field):
        raise LengthsError(
            f"{where}: {what} {shown(field)} is {_fault(field)}; expected a whole number of {low} or more."
        )
    digits = field.partition(".")[0]
    if len(digits) > _MAX_DIGITS:  # before int(), which refuses thousands of digits in its own words
        raise LengthsError(f"{where}: {what} has {len(digits)} digits; expected {low} .. {high}.")
    number = int(digits)
    if number < low:
        fix = (
            "leave the line out where nobody has that length" if what == "count" else "a sequence has 0 events or more"
        )
        raise LengthsError(f"{where}: {what} {shown(number)} is below {low}; {fix}.")
    if number > high:
        raise LengthsError(f"{where}: {what} {shown(number)} is above {high}; expected {low} .. {high}.")
    return number
