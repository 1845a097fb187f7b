"""Checks of single policy fields: each returns the clean value or raises one line with the number and the fix."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeVar

from labkit.errors import EdgesError, PolicyError
from labkit.lengths.validate import MAX_LENGTH
from labkit.units import shown

_E = TypeVar("_E", bound=StrEnum)


def whole_number(name: str, value: Any, *, least: int = 1, most: int = 2**62) -> int:
    """Return ``value`` as a Python int within least .. most; NumPy integers count, bools and floats do not."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise PolicyError(f"{name} must be a whole number: got {shown(value)} ({type(value).__name__}).") from None
    if number < least:
        raise PolicyError(f"{name} must be {least} or more: got {shown(number)}.")
    if number > most:
        raise PolicyError(f"{name} must be at most {most}: got {shown(number)}.")
    return number


def choice(name: str, value: Any, options: type[_E]) -> _E:
    """Return the member of a ``StrEnum`` whose key is ``value``, or name those that exist."""
    try:
        return options(value)
    except ValueError:
        keys = ", ".join(str(o) for o in options)
        raise PolicyError(f"{name} {shown(value)} does not exist: use one of {keys}.") from None


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is a bool (NumPy's counts)."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    raise PolicyError(f"{name} must be true or false: got {shown(value)} ({type(value).__name__}).")


def edges(value: Any) -> tuple[int, ...]:
    """Return bucket edges as a tuple of ints: at least one, whole, 1 or more, strictly increasing."""
    numbers = _whole_numbers("bucket_edges", value)
    if not numbers:
        raise EdgesError("bucket_edges are empty: give at least one edge, the longest length.")
    for i, (low, high) in enumerate(pairwise(numbers)):
        if high == low:
            raise EdgesError(
                f"bucket_edges must be strictly increasing: {high} is repeated (positions {i} and {i + 1})."
            )
        if high < low:
            raise EdgesError(
                f"bucket_edges must be strictly increasing: {high} follows {low} at position {i + 1}. Sort them."
            )
    return numbers


def widths(value: Any, bucket_edges: tuple[int, ...]) -> tuple[int, ...]:
    """Return bucket widths as a tuple of ints: one for each edge, 1 <= width <= edge."""
    numbers = _whole_numbers("bucket_widths", value)
    if len(numbers) != len(bucket_edges):
        raise EdgesError(
            f"bucket_widths need one width per edge: got {len(numbers)} widths for {len(bucket_edges)} edges."
        )
    for i, (width, edge) in enumerate(zip(numbers, bucket_edges, strict=True)):
        if width > edge:
            raise EdgesError(f"bucket_widths[{i}] = {width} is above its edge {edge}: a width is at most its edge.")
    return numbers


def plain(value: Any) -> Any:
    """Return ``value`` in plain types, unchecked, so that it hashes and goes into JSON; lists and arrays as tuples."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(value) if isinstance(value, list) else value


def _whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise EdgesError(f"{name} must be a list of whole numbers: got {shown(value)}.")
    numbers = []
    for i, item in enumerate(value):
        try:
            numbers.append(whole_number(f"{name}[{i}]", item, most=MAX_LENGTH))
        except PolicyError as error:
            raise EdgesError(str(error)) from None
    return tuple(numbers)
