"""From the text of a tuned JSON to its one-line errors: not JSON, not ours, of the future, a field that is wrong."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from labkit.errors import ConfigError, DataFileError
from labkit.files import PathKind, check_target, expanded, kind_of, reason_of
from labkit.units import shown

KIND: Final = "labkit.tuned_config"
SCHEMA_VERSION: Final = 1


def parse_strictly(text: str) -> dict[str, Any]:
    """Parse the JSON of a tuned configuration and look at what it claims to be.

    Raises:
        ConfigError: not JSON by the book (NaN and repeated names are not), not ours, or of another version.
    """
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except ConfigError:
        raise
    except json.JSONDecodeError as error:
        raise ConfigError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, a tower of brackets
        raise ConfigError(f"not JSON that can be read: {_first_line(error)}") from None
    if not isinstance(data, dict) or "kind" not in data:
        raise ConfigError(f"not a tuned configuration of labkit: it has no field 'kind' that says {KIND!r}.")
    if data["kind"] != KIND:
        raise ConfigError(f"not a tuned configuration of labkit: kind is {shown(data['kind'])}, expected {KIND!r}.")
    _check_version(data)
    return data


def _check_version(data: dict[str, Any]) -> None:
    found = data.get("schema_version")
    reads = f"this labkit {version('labkit')} reads version {SCHEMA_VERSION}"
    if type(found) is not int or found < 1:
        what = shown(found) if "schema_version" in data else "missing"
        raise ConfigError(f"schema_version is {what}, expected a whole number from 1: {reads}.")
    if found > SCHEMA_VERSION:
        raise ConfigError(f"schema_version is {shown(found)}, {reads}: upgrade labkit where it is read.")


def first_fault(error: ValidationError, data: Any) -> str:
    """One line on the first fault of a validation: the path of the field, its value, what is wrong with it.

    Args:
        error: what pydantic found.
        data: the data that was validated, as plain JSON types; used to name the path.
    """
    fault = error.errors(include_url=False)[0]
    kind, path = fault["type"], _path(fault["loc"], data, missing=fault["type"] == "missing")
    others = len({_path(e["loc"], data, missing=e["type"] == "missing") for e in error.errors()}) - 1
    more = f" ({others} more field{'s' if others > 1 else ''} wrong)" if others else ""
    if kind == "missing":
        return f"{path} is missing{more}."
    if kind == "extra_forbidden":
        return f"{path} is no field of a tuned configuration{more}."
    if kind == "value_error":  # one of our own validators: its message has the number and the fix
        return f"{path}: {fault['ctx']['error']}{more}" if path else f"{fault['ctx']['error']}{more}"
    wrong = fault["msg"].replace("Input should", "it should").rstrip(".")
    return f"{path} is {shown(fault['input'])}: {wrong}{more}."


def check_tuned_target(path: str | os.PathLike[str]) -> Path:
    """The path, ``~`` expanded, if a tuned configuration can be written there without overwriting anything else.

    Raises:
        DataFileError: what ``check_target`` refuses, or a file that is there and is no tuned configuration.
    """
    target = check_target(expanded(path))
    kind = kind_of(target, verb="write")
    if kind is not None and not (kind is PathKind.FILE and _is_ours(target)):
        raise DataFileError(
            f"{str(target)!r} is there and is no tuned configuration, so it is not overwritten: choose another name."
        )
    return target


def _is_ours(path: Path) -> bool:
    """Whether a file says that it is a tuned configuration, of any version, whole or not in its fields."""
    try:
        with path.open("rb") as file:
            if not file.read(64).lstrip().startswith(b"{"):  # a large file of another kind is not read
                return False
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise DataFileError(f"cannot read {str(path)!r}, which would be overwritten: {reason_of(error)}.") from error
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("kind") == KIND


def _path(loc: tuple[int | str, ...], data: Any, *, missing: bool) -> str:
    """``histogram.counts[3]``: the part of a location that lies in the data, without pydantic's names of types."""
    path, here = "", data
    for i, part in enumerate(loc):
        known = part in here if isinstance(here, dict) else isinstance(here, list) and isinstance(part, int)
        if not known and not (missing and i == len(loc) - 1):
            break
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
        here = here[part] if known else None
    return path


def _no_constant(name: str) -> Any:
    raise ConfigError(f"not strict JSON: {name} is no number. A number that does not exist is null with a reason.")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"not strict JSON: field {twice!r} appears twice in one object.")
    return data


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
