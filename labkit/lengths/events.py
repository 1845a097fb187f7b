"""Events per user, counted by DuckDB out of core: of an event table only the user column is read."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import DataFileError, LengthsError, LengthsWarning, MissingPackageError
from labkit.files import reason_of
from labkit.lengths.event_tables import columns_of, project, read_call

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_INTEGERS = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
_MAX_MESSAGE = 300
_FLOATS = frozenset({"FLOAT", "DOUBLE"})

# count(happened) skips the rows of the users table; at most one group is NULL, so that max() picks its figures
_QUERY = """
SELECT n, count(*) AS users,
       coalesce(max(n) FILTER (u IS NULL), 0) AS unnamed_events,
       coalesce(max(entries - n) FILTER (u IS NULL), 0) AS unnamed_users,
       count(*) FILTER (n > 0 AND entries > n) AS matched,
       count(*) FILTER (entries = n AND u IS NOT NULL) AS unlisted
FROM (SELECT u, count(happened) AS n, count(*) AS entries FROM ({rows}) GROUP BY u)
GROUP BY n
"""
# the same figures without a users table: one column less to carry through the aggregation
_QUERY_EVENTS_ONLY = """
SELECT n, count(*) AS users, coalesce(max(n) FILTER (u IS NULL), 0) AS unnamed_events
FROM (SELECT u, count(*) AS n FROM ({rows}) GROUP BY u)
GROUP BY n
"""


def count_events(
    table: Any, user: str = "user_id", users: Any | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the events of each user, then the users of each count.

        user_id a b a a    ->    values 1 3    counts 1 1

    Args:
        table: one row an event. Path of a Parquet or CSV file (``.csv``, ``.tsv``, also ``.gz`` or ``.zst``; with a
            header line), a glob, a folder of Parquet files, or a pandas, polars or Arrow table.
        user: the column that names the user: integers, text, any type that can be grouped. CSV ids are text, so that
            ``007`` and ``7`` stay two users.
        users: optional table of all users, of the same kinds and with the same column. Users without events count as
            length 0; an id listed twice is one user; a user with events who is not listed is counted all the same, and
            a ``LengthsWarning`` says how many.

    Returns:
        values (m,) int64, ascending, and counts (m,) int64.

    Raises:
        DataFileError: a file that is missing or not readable, or a table of a kind that is not read here.
        LengthsError: no such column (the message names those there are), no rows, rows without a user, or ids of two
            kinds that cannot be matched.
        MissingPackageError: DuckDB is not installed.

    Cost: one pass over the user column, O(users) memory, spilled to a temporary folder where that is too much.
    """
    with _connection() as connection:
        events = _open(connection, table, user, "events")
        listed = None if users is None else _open(connection, users, user, "users")
        result = _run(connection, events, listed)
    if listed is not None and (unnamed := int(np.max(result["unnamed_users"], initial=0))):
        raise LengthsError(_unnamed(unnamed, f"the users table has no value in {user!r}"))
    if unnamed := int(np.max(result["unnamed_events"], initial=0)):
        raise LengthsError(_unnamed(unnamed, f"the event table has no value in {user!r}"))
    if result["n"].size == 0:
        raise LengthsError("the event table has no rows: at least one event, or a table of users, is needed.")
    if listed is not None and events.type != listed.type and result["n"].any() and not result["matched"].any():
        raise LengthsError(
            f"no user of the event table ({events.type}) is in the users table ({listed.type}): write the ids of "
            f"column {user!r} the same way in both."
        )
    if listed is not None and (unlisted := int(result["unlisted"].sum())):
        warnings.warn(_unlisted(unlisted), LengthsWarning, stacklevel=2)
    order = np.argsort(result["n"])
    return result["n"][order], result["users"][order]


@dataclass(frozen=True)
class _Column:
    """The user column of one table, as a query of a single column ``u``."""

    query: str
    parameters: list[str]
    type: str


@contextmanager
def _connection() -> Iterator[DuckDBPyConnection]:
    """A private in-memory database that spills into a folder of its own; nothing is left behind."""
    try:
        import duckdb
    except ImportError:
        raise MissingPackageError(
            "event tables are counted by DuckDB, which is not installed: pip install duckdb"
        ) from None
    try:
        spill = tempfile.TemporaryDirectory(prefix="labkit-")
    except OSError as error:
        raise DataFileError(
            f"no folder for temporary files: {reason_of(error)}. Name one that can be written to in TMPDIR."
        ) from error
    with spill as folder:
        config: dict[str, Any] = {"temp_directory": folder, "autoinstall_known_extensions": False}
        with duckdb.connect(":memory:", config=config) as connection:
            try:
                yield connection
            except duckdb.Error as error:
                raise DataFileError(_refused(error)) from error


def _open(connection: DuckDBPyConnection, table: Any, user: str, name: str) -> _Column:
    """Find the user column of a table and its type, without reading a row."""
    if call := read_call(table, user):
        source, parameters = call.sql, [call.path]
        columns = _describe(connection, f"SELECT * FROM {source}", parameters)
        have = list(columns)
    else:
        have = columns_of(table)
    if have.count(user) != 1:
        raise LengthsError(_missing(user, have, "event table" if name == "events" else "users table"))
    if not call:
        source, parameters = quoted(name), []
        connection.register(name, project(table, user))
        columns = _describe(connection, f"SELECT * FROM {source}", parameters)
    kind = columns[user]
    # NaN is how a float column says that a value is missing
    value = f"nullif({quoted(user)}, 'NaN'::{kind})" if kind in _FLOATS else quoted(user)
    return _Column(f"SELECT {value} AS u FROM {source}", parameters, kind)


def _describe(connection: DuckDBPyConnection, query: str, parameters: list[str]) -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE {query}", parameters).fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


def _run(connection: DuckDBPyConnection, events: _Column, users: _Column | None) -> dict[str, NDArray[np.int64]]:
    if users is None:
        query, parameters = _QUERY_EVENTS_ONLY.format(rows=events.query), events.parameters
    else:
        value = "u::VARCHAR" if _must_cast(events.type, users.type) else "u"
        rows = (
            f"SELECT {value} AS u, 1 AS happened FROM ({events.query}) "
            f"UNION ALL SELECT {value}, NULL FROM ({users.query})"
        )
        query, parameters = _QUERY.format(rows=rows), events.parameters + users.parameters
    columns = connection.execute(query, parameters).fetchnumpy()
    return {name: np.asarray(column).astype(np.int64) for name, column in columns.items()}


def _must_cast(events: str, users: str) -> bool:
    """Whether ids of two types meet as text; False where they meet as they are."""
    if events == users or {events, users} <= _INTEGERS:
        return False
    for kind in (events, users):
        if kind not in _INTEGERS and kind not in ("VARCHAR", "UUID") and not kind.startswith("ENUM"):
            raise LengthsError(
                f"ids are {events} in the event table and {users} in the users table: convert one column to the type "
                "of the other, so that equal users are equal."
            )
    return True


def _missing(user: str, have: list[str], table: str) -> str:
    found = "more than one column" if user in have else "no column"
    fix = "Name the column that holds the user."
    if len(have) == 1 and any(separator in have[0] for separator in ",;|\t"):
        fix = "Its lines do not all have as many fields as the first one: mend the file."
    return f"{found} {user!r} in the {table}: it has {', '.join(map(repr, have)) or 'none'}. {fix}"


def _unnamed(rows: int, where: str) -> str:
    return f"{where} for {rows} row{'s' if rows > 1 else ''}: filter them out, or give them an id of their own."


def _unlisted(users: int) -> str:
    who = "1 user with events is" if users == 1 else f"{users} users with events are"
    return f"{who} not in the users table, and counted all the same: add them to it if it should list everyone."


def _refused(error: Exception) -> str:
    """What DuckDB says, without its advice on its own options and without the query, and what to do about it."""
    text = re.split(r"\n\s*(?:Possible (?:Solution|fixes)|LINE 1:|For more info)", str(error))[0]
    why = " ".join(text.split())
    if nothing := re.search(r'No files found that match the pattern "(.*)"', why):
        return f"no file matches {nothing[1]!r}: check the pattern, which starts from the current folder."
    why = why.rstrip(".") if len(why) <= _MAX_MESSAGE else why[:_MAX_MESSAGE] + ".."
    return f"cannot read this table: {why}. Mend the file that it names, or write it again."


def quoted(identifier: str) -> str:
    """The identifier in double quotes, with its own quotes doubled."""
    return '"' + identifier.replace('"', '""') + '"'
