"""Strict JSON, and the lists of whole numbers in it: a fault is one line with the file, the field and the numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from labkit.errors import DataFileError, EdgesError
from labkit.files import not_found, reason_of
from labkit.lengths.validate import MAX_LENGTH
from labkit.units import shown

_MOST_SHOWN = 60


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataFileError: no name, missing, unreadable, not UTF-8, or not JSON by the book (NaN and infinity are not).
    """
    text = _text_of(path)
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_whole)
    except json.JSONDecodeError as error:
        line = f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise DataFileError(line + yaml_hint(path)) from None
    except (ValueError, RecursionError) as error:  # NaN, an integer of thousands of digits, a tower of brackets
        raise DataFileError(f"{path}: not JSON that can be read: {str(error).splitlines()[0]}") from None


def yaml_hint(path: Path) -> str:
    """What to add to the line on a file that is not JSON: what to do where it is YAML, else nothing."""
    return " Write YAML as JSON first." if path.suffix.lower() in {".yaml", ".yml"} else ""


def _text_of(path: Path) -> str:
    """The text of an edges file, without its byte order mark."""
    if path == Path():  # what an empty text becomes
        raise DataFileError("the file name is empty, or '.': name the JSON file with the edges.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise not_found(path) from None
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: not JSON: byte {error.start} is not UTF-8. An edges file is JSON text.") from None
    except (OSError, ValueError) as error:
        raise DataFileError(f"cannot read {str(path)!r}: {reason_of(error)}.") from error


def field_of(data: Any, names: tuple[str, ...], where: str, what: str) -> Any:
    """The list itself, or the first of these fields of an object.

    Raises:
        DataFileError: neither a list nor an object with one of them.
    """
    if isinstance(data, list):
        return data
    if isinstance(data, dict):
        for name in names:
            if data.get(name) is not None:
                return data[name]
    expected = f"a list or an object with the field {' or '.join(map(repr, names))}"
    raise DataFileError(f"{where}: no {what}: expected {expected}, got {_described(data)}.")


def whole_numbers(value: Any, name: str, where: str, *, least: int = 1, unit: str = "events") -> tuple[int, ...]:
    """Return a JSON list as whole numbers within least .. 2**31 - 1; ``7.0`` is one, ``7.5`` and ``true`` are not."""
    if not isinstance(value, list):
        raise EdgesError(f"{where}: {name} must be a list of whole numbers: got {_described(value)}.")
    numbers = []
    for i, item in enumerate(value):
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise EdgesError(f"{where}: {name}[{i}] must be a whole number: got {_described(item)}.")
        if isinstance(item, float) and not item.is_integer():
            raise EdgesError(f"{where}: {name}[{i}] = {item} is not a whole number: count in {unit}.")
        if not least <= item <= MAX_LENGTH:
            raise EdgesError(f"{where}: {name}[{i}] = {shown(item)} is outside {least} .. 2**31 - 1 = {MAX_LENGTH}.")
        numbers.append(int(item))
    return tuple(numbers)


def increasing(numbers: tuple[int, ...], name: str, where: str) -> tuple[int, ...]:
    """Return the numbers if there are any and each is above the one before."""
    if not numbers:
        raise EdgesError(f"{where}: {name} is empty: at least one number is needed.")
    for i, (low, high) in enumerate(pairwise(numbers)):
        if high == low:
            raise EdgesError(f"{where}: {name} has {high} twice, at positions {i} and {i + 1}: leave one out.")
        if high < low:
            raise EdgesError(f"{where}: {name} must increase: {high} follows {low} at position {i + 1}. Sort them.")
    return numbers


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number.")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads no integer of thousands of digits
        digits = len(text.lstrip("-"))
        raise ValueError(f"an integer has {digits} digits, {MAX_LENGTH} is the largest length.") from None


def _described(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(map(repr, list(value)[:6]))
        return f"an object with the fields {names}{', ...' if len(value) > 6 else ''}" if value else "an empty object"
    text = json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
