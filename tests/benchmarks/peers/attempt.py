"""A peer that cannot be used is missing, with the reason; never a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Missing:
    """What stands where a figure would stand."""

    reason: str


def attempt(call: Callable[[], T]) -> T | Missing:
    """The result, or why there is none. A wrong call of ours is an error all the same."""
    try:
        return call()
    except (ImportError, OSError) as error:  # OSError: a library that does not load
        return Missing(" ".join(f"{type(error).__name__}: {error}".split()))


def reasons(found: dict[str, object]) -> list[str]:
    """A line for each that is missing."""
    return [f"{name} is missing: {value.reason}" for name, value in found.items() if isinstance(value, Missing)]
