"""What counts as an event table: files by their ending, and frames by their package; nothing is read here."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import DataFileError
from labkit.files import PathKind, kind_of, not_found, reason_of

PARQUET_ENDINGS = (".parquet", ".pq", ".parq")
CSV_ENDINGS = (".csv", ".tsv", ".txt")
_COMPRESSED = (".gz", ".zst")
_PARQUET_MARKS = (b"PAR1", b"PARE")  # first and last four bytes; the second of an encrypted file
_LEAST_PARQUET = 12  # both marks, and the length of the footer between them

# Ids stay text, and nothing but the separator is guessed: a guessed comment sign or preamble would drop rows.
_READ_CSV = (
    "read_csv(?, header = true, all_varchar = true, union_by_name = true, skip = 0, "
    "comment = '', quote = '\"', escape = '\"')"
)


@dataclass(frozen=True)
class ReadCall:
    """A table function of DuckDB with the one path or glob that it takes as a parameter."""

    sql: str
    path: str


def ending(path: str) -> str:
    """The ending that tells the kind of a file, in lower case, without a compression's: ``.csv`` of ``a.CSV.gz``."""
    name = Path(path)
    suffix = name.suffix.lower()
    return Path(name.stem).suffix.lower() if suffix in _COMPRESSED else suffix


def is_frame(table: Any) -> bool:
    """Whether this is a pandas, polars or Arrow table, seen without importing any of them."""
    for cls in type(table).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in ("pandas", "polars"):
            return any(c.__name__ in ("DataFrame", "LazyFrame") for c in type(table).__mro__)
        if package == "pyarrow":
            return hasattr(table, "schema")
    return False


def columns_of(frame: Any) -> list[str]:
    """Names of the columns of a frame; of a lazy one without collecting it."""
    if hasattr(frame, "collect_schema"):
        return list(map(str, frame.collect_schema().names()))
    if hasattr(frame, "schema") and hasattr(frame.schema, "names"):
        return list(map(str, frame.schema.names))
    return list(map(str, frame.columns))


def project(frame: Any, user: str) -> Any:
    """The frame with the user column alone, so that no other one is even looked at."""
    if hasattr(frame, "loc"):  # pandas
        return frame[[user]]
    if hasattr(frame, "select") or hasattr(frame, "num_columns"):  # polars, Arrow tables and record batches
        return frame.select([user])
    return frame  # Arrow datasets and readers: DuckDB asks them for the columns that it needs


def look_at(name: str) -> PathKind | None:
    """What lies at the path; None where nothing does, and for an address or a pattern that is no path.

    Raises:
        DataFileError: a path that the system does not let us look at.
    """
    if "://" in name:
        return None
    try:
        return kind_of(name)
    except DataFileError:
        if glob.has_magic(name):
            return None
        raise


def read_call(table: Any, user: str) -> ReadCall | None:
    """How DuckDB reads this path; None for a frame.

    Raises:
        DataFileError: missing, not a kind that is read here, or neither a path nor a frame.
    """
    if not isinstance(table, (str, os.PathLike)):
        if is_frame(table):
            return None
        raise DataFileError(
            f"cannot count events in a value of type {type(table).__name__}: pass a path (Parquet, CSV, a glob) or a "
            f"pandas, polars or Arrow table with a column {user!r}."
        )
    name = os.fspath(table)
    found = look_at(name) if name else None  # an empty name would mean the folder that we are in
    if found is PathKind.FOLDER:
        return _read_folder(name)
    if found is not None:
        path = glob.escape(name)  # a file whose name looks like a glob is still that one file
    elif "://" in name or glob.has_magic(name):
        path = name  # DuckDB says so where nothing is there
    else:
        raise not_found(name)
    kind = ending(name)
    if found is PathKind.FILE and kind in PARQUET_ENDINGS + CSV_ENDINGS:
        _check_file(name, is_parquet=kind in PARQUET_ENDINGS)
    if kind in PARQUET_ENDINGS:
        return ReadCall("read_parquet(?)", path)
    if kind in CSV_ENDINGS:
        return ReadCall(_READ_CSV, path)
    raise DataFileError(
        f"cannot tell what {name!r} is: an event table ends in {', '.join(PARQUET_ENDINGS + CSV_ENDINGS)} (CSV also "
        "with .gz or .zst)."
    )


def _read_folder(name: str) -> ReadCall:
    try:
        os.scandir(name).close()  # a search passes over what it may not read, and would say that nothing is there
    except OSError as error:
        raise DataFileError(f"cannot read folder {name!r}: {reason_of(error)}.") from error
    bare = name.rstrip("/")
    if not any(Path(name).rglob("*.parquet")):
        raise DataFileError(
            f"{name!r} is a folder without Parquet files: pass a file, or a pattern such as {f'{bare}/*.csv'!r}."
        )
    return ReadCall("read_parquet(?)", f"{glob.escape(bare)}/**/*.parquet")


def _check_file(name: str, *, is_parquet: bool) -> None:
    """Refuse what DuckDB would refuse in words that name no fix."""
    try:
        with Path(name).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            first = file.read(4)
            file.seek(max(0, size - 4))
            last = file.read(4)
    except OSError as error:
        raise DataFileError(f"cannot read {name!r}: {reason_of(error)}.") from error
    if size == 0:
        raise DataFileError(f"{name!r} is empty: an event table has a header line and one row an event.")
    if is_parquet and (size < _LEAST_PARQUET or first not in _PARQUET_MARKS or last != first):
        what = "is cut short" if first in _PARQUET_MARKS else "is no Parquet file"
        raise DataFileError(f"{name!r} {what}: write it again, or name it by what it is ({', '.join(CSV_ENDINGS)}).")
