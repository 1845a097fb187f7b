"""Where lengths come from at the outside doors: a tuned JSON, which carries its histogram, or anything with lengths."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import LengthsError
from labkit.files import expanded, not_found
from labkit.lengths.event_tables import look_at
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.load import load_lengths
from labkit.lengths.presets import find_preset, require_preset

if TYPE_CHECKING:
    from labkit.config.tuned import TunedConfig


def open_source(source: Any, user: str | None = None, users: Any | None = None) -> LengthHistogram:
    """The histogram of a tuned JSON or of whatever ``load_lengths`` accepts, with at least one event in it.

    Args:
        source: path of a tuned JSON (``~`` is the home folder); name of a preset; path of a histogram CSV, an ``.npy``
            or an event table; an array, a frame or a histogram.
        user: column of an event table that names the user.
        users: table of all users for an event table.

    Raises:
        ConfigError: a tuned JSON that is broken, of a future version or not ours.
        DataFileError, LengthsError, MissingPackageError: as ``load_lengths``; all lengths are 0.

    Cost: that of the loader.
    """
    source, users = _at_home(source), _at_home(users)
    tuned = open_tuned(source, user, users)
    histogram = load_lengths(source, user, users) if tuned is None else tuned.length_histogram
    if histogram.events == 0:
        raise LengthsError(
            f"all {histogram.sequences} sequences have length 0: there is no event to batch. Check what was counted."
        )
    return histogram


def check_data(preset: str | None, lengths_file: str | None, user_column: str | None) -> None:
    """What a notebook says of its data, before any is read: a file wins over the preset; None is no preset.

    Raises:
        LengthsError: an empty user column; DataFileError: a preset that does not exist.
    """
    if user_column == "":
        raise LengthsError("user_column is empty: name the column that holds the user, or leave it None.")
    if lengths_file is None and preset is not None:
        require_preset(preset)


def require_source(path: str) -> None:
    """Look whether there is a preset or a file of that name, without reading it; patterns and addresses are let pass.

    Raises:
        DataFileError: there is none, or the system does not let us look.
    """
    name = expanded(path)
    if name and (find_preset(name) or "://" in name or look_at(name) or glob.has_magic(name)):
        return
    raise not_found(name)


def _at_home(source: Any) -> Any:
    return expanded(source) if isinstance(source, (str, os.PathLike)) else source


def open_tuned(source: Any, user: str | None = None, users: Any | None = None) -> TunedConfig | None:
    """The tuned configuration that ``source`` names by its ending ``.json``; None where it names something else.

    Raises:
        ConfigError, DataFileError: as ``TunedConfig.load``.
        LengthsError: a user column or table, which a tuned configuration has no use for.
    """
    if not isinstance(source, (str, os.PathLike)):
        return None
    name = expanded(source)
    if Path(name).suffix.lower() != ".json" or find_preset(name):
        return None
    given = "users" if users is not None else "user" if user is not None else None
    if given:
        raise LengthsError(f"{given!r} is for event tables (one row an event), and {name!r} is none: leave it out.")
    from labkit.config.tuned import TunedConfig  # not at the top: pydantic takes longer than most answers

    return TunedConfig.load(name)
