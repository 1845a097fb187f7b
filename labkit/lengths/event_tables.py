"""What counts as an event table: files by their ending, and frames by their package; nothing is read here."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import DataFileError

PARQUET_ENDINGS = (".parquet", ".pq", ".parq")
CSV_ENDINGS = (".csv", ".tsv", ".txt")
_COMPRESSED = (".gz", ".zst")

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
    if Path(name).is_dir():
        if not any(Path(name).rglob("*.parquet")):
            raise DataFileError(f"no Parquet file in folder {name!r}: pass a file, or a glob such as 'logs/*.csv'.")
        return ReadCall("read_parquet(?)", f"{glob.escape(name.rstrip('/'))}/**/*.parquet")
    if Path(name).exists():
        if Path(name).stat().st_size == 0:
            raise DataFileError(f"{name!r} is empty: an event table has a header line and one row an event.")
        path = glob.escape(name)  # a file whose name looks like a glob is still that one file
    elif "://" in name or glob.has_magic(name):
        path = name  # DuckDB says so where nothing is there
    else:
        raise DataFileError(f"file not found: {name!r}. Check the path, from folder {str(Path.cwd())!r}.")
    kind = ending(name)
    if kind in PARQUET_ENDINGS:
        return ReadCall("read_parquet(?)", path)
    if kind in CSV_ENDINGS:
        return ReadCall(_READ_CSV, path)
    raise DataFileError(
        f"cannot tell what {name!r} is: an event table ends in {', '.join(PARQUET_ENDINGS + CSV_ENDINGS)} (CSV also "
        "with .gz or .zst)."
    )
