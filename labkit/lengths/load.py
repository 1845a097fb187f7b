"""From whatever the user has to a histogram: one place that tells presets, files, event tables and arrays apart."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import DataFileError, LengthsError
from labkit.files import PathKind, not_found, reason_of
from labkit.lengths.event_tables import CSV_ENDINGS, PARQUET_ENDINGS, ending, is_frame, look_at
from labkit.lengths.events import count_events
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.histogram_csv import read_histogram_csv
from labkit.lengths.presets import closest, find_preset, preset, preset_names
from labkit.lengths.validate import checked_lengths

__all__ = ["count_events", "load_lengths", "read_histogram_csv", "read_lengths_npy"]

_NPY_MAGIC = b"\x93NUMPY"
_KINDS = "a histogram CSV 'length,count', an .npy of lengths, or an event table (Parquet or CSV) with its user column"


def load_lengths(source: Any, user: str | None = None, users: Any | None = None) -> LengthHistogram:
    """The histogram of ``source``, whatever it is.

    Args:
        source: name of a preset; path of a histogram CSV, of an ``.npy`` of lengths, or of an event table (Parquet;
            CSV where ``user`` is given; a glob; a folder of Parquet files); an array of lengths; a pandas, polars or
            Arrow table of events; or a histogram, which comes back as it is.
        user: column of an event table that names the user; Parquet and frames default to ``user_id``.
        users: table of all users for an event table; see ``count_events``.

    Returns:
        The histogram.

    Raises:
        DataFileError: no such preset or file (a near miss is named), or a kind that is not read.
        LengthsError: the lengths in it cannot be used; see the loaders.
        MissingPackageError: an event table, and DuckDB is not installed.

    Cost: that of the loader; O(1) for a histogram.
    """
    if user == "":
        raise LengthsError("'user' is empty: name the column of the event table that holds the user, or leave it out.")
    if isinstance(source, (str, os.PathLike)):
        return _from_name(os.fspath(source), user, users)
    if is_frame(source):
        return LengthHistogram(*count_events(source, user=user or "user_id", users=users))
    _refuse_users(user, users, f"a value of type {type(source).__name__}")
    if isinstance(source, LengthHistogram):
        return source
    try:
        array = np.asarray(source)
    except (TypeError, ValueError):  # a ragged list, or an object that says no
        array = np.array(None)
    if array.ndim == 0:
        raise DataFileError(
            f"cannot read lengths from a value of type {type(source).__name__}: pass a preset's name, {_KINDS}."
        )
    return LengthHistogram.from_lengths(array)


def read_lengths_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Open an ``.npy`` file of one length a sequence, mapped into memory and never unpickled.

    Args:
        path: a file written by ``np.save``: (N,) integers, or floats that are whole numbers.

    Returns:
        (N,) integer array, read-only; mapped where the file holds integers.

    Raises:
        DataFileError: missing, not an ``.npy`` file, cut short, or holding Python objects.
        LengthsError: what ``checked_lengths`` refuses (two-dimensional, negative, fractional, empty and so on).

    Cost: two passes over the file; memory only as the system's page cache sees fit.
    """
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            magic = file.read(len(_NPY_MAGIC))
    except FileNotFoundError:
        raise not_found(name) from None
    except (OSError, ValueError) as error:
        raise DataFileError(f"cannot read {name!r}: {reason_of(error)}.") from error
    if magic != _NPY_MAGIC:
        kind = "an .npz archive" if magic[:2] == b"PK" else "not an .npy file"
        raise DataFileError(f"{name!r} is {kind}: write one array of lengths with np.save.")
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError) as error:
        if "object" in str(error).lower():
            raise DataFileError(
                f"{name!r} holds Python objects, which are never unpickled: save the lengths as integers."
            ) from None
        raise DataFileError(f"{name!r} is damaged: {_one_line(error)}. Write it again with np.save.") from None
    return checked_lengths(array, what=f"lengths in {name!r}")


def _from_name(name: str, user: str | None, users: Any | None) -> LengthHistogram:
    if find_preset(name):
        _refuse_users(user, users, f"preset {name!r}")
        return preset(name)
    if not name:  # which would mean the folder that we are in
        raise DataFileError(_nothing_there(name))
    kind = ending(name)
    if kind == ".json":
        raise DataFileError(
            f"{name!r} is a JSON file, and lengths are not read from JSON here: load a tuned configuration with "
            "TunedConfig.load, whose histogram is its lengths."
        )
    found = look_at(name)
    many = found is PathKind.FOLDER or (found is None and glob.has_magic(name))
    if many or "://" in name or kind in PARQUET_ENDINGS or (user is not None and kind in CSV_ENDINGS):
        return LengthHistogram(*count_events(name, user=user or "user_id", users=users))
    if found is None:
        raise DataFileError(_nothing_there(name))
    if kind == ".npy":
        _refuse_users(user, users, f"{name!r}")
        return LengthHistogram.from_lengths(read_lengths_npy(name))
    if kind in CSV_ENDINGS:
        _refuse_users(user, users, f"histogram {name!r}")
        return LengthHistogram(*read_histogram_csv(name))
    raise DataFileError(f"cannot tell what {name!r} is by its ending {Path(name).suffix!r}: pass {_KINDS}.")


def _nothing_there(name: str) -> str:
    near = closest(name)
    hint = f"did you mean {near!r}? " if near else ""
    return f"no preset and no file {name!r}: {hint}presets are {', '.join(preset_names())}; or pass {_KINDS}."


def _refuse_users(user: str | None, users: Any | None, what: str) -> None:
    """A user column that would be ignored is a mistake of the caller."""
    given = "users" if users is not None else "user" if user is not None else None
    if given:
        raise LengthsError(f"{given!r} is for event tables (one row an event), and {what} is none: leave it out.")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
