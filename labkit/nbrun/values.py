"""One value against one annotation: texts are converted as the annotation says, everything else must fit as it is."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

_NONE_WORDS = ("none", "null")


class MisfitError(ValueError):
    """The value is not of that type; the text may add why."""


def fitted(annotation: ast.expr, value: Any) -> Any:
    """The value as a plain Python value of the annotated type.

    Args:
        annotation: ``int``, ``float``, ``str``, ``bool``, ``None``, ``Any``, a union of these, ``Optional[...]``,
            ``Literal[...]``, ``list[...]``, ``tuple[..., ...]`` (which becomes a list), or one of them in quotes.
        value: Python's, NumPy's, or a text as typed on a command line.

    Raises:
        MisfitError: it is not of that type, or the annotation is none of the above.
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()  # a scalar becomes Python's own
    match annotation:
        case ast.Constant(value=None):
            return _none(value)
        case ast.Constant(value=str() as quoted):
            return fitted(_parsed(quoted), value)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([left, right], value)
        case ast.Subscript(value=outer, slice=inner):
            return _subscript(annotation, _name(outer), inner, value)
    convert = _SCALARS.get(_name(annotation))
    if convert is None:
        raise MisfitError(f"labkit run cannot set a {ast.unparse(annotation)}")
    return convert(value)


def _subscript(whole: ast.expr, outer: str, inner: ast.expr, value: Any) -> Any:
    parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    match outer.lower():
        case "optional":
            return _any_of([ast.Constant(value=None), *parts], value)
        case "union":
            return _any_of(parts, value)
        case "literal":
            return _one_of([ast.literal_eval(part) for part in parts], value)
        case "list" | "sequence":
            return [fitted(inner, item) for item in _items(value)]
        case "tuple":
            if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...:
                return [fitted(parts[0], item) for item in _items(value)]
            items = _items(value)
            if len(items) != len(parts):
                raise MisfitError(f"{len(items)} items")
            return [fitted(part, item) for part, item in zip(parts, items, strict=True)]
    raise MisfitError(f"labkit run cannot set a {ast.unparse(whole)}")


def _any_of(parts: list[ast.expr], value: Any) -> Any:
    """The first member of a union that takes the value; text itself comes last, since it takes everything."""
    members = [member for part in parts for member in _members(part)]
    members.sort(key=lambda member: _name(member) in ("str", "Any"))
    for member in members:
        try:
            return fitted(member, value)
        except MisfitError:
            continue
    raise MisfitError


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    return [node]


def _none(value: Any) -> None:
    if value is not None and not (isinstance(value, str) and value.lower() in _NONE_WORDS):
        raise MisfitError


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise MisfitError("write true or false")


def _int(value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise MisfitError from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise MisfitError
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise MisfitError
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise MisfitError from None
    if not math.isfinite(number):
        raise MisfitError("not a finite number")
    return number


def _str(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise MisfitError
    return str(os.fspath(value))


def _anything(value: Any) -> Any:
    """Whatever can be written as a literal."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return _float(value)
        case str() | os.PathLike():
            return _str(value)
        case list() | tuple():
            return [_anything(item) for item in value]
    raise MisfitError(f"a {type(value).__name__} cannot be written into a notebook")


def _one_of(options: list[Any], value: Any) -> Any:
    for option in options:
        is_same = type(option) is type(value) and option == value
        if is_same or (isinstance(value, str) and str(option) == value):
            return option
    raise MisfitError


def _items(value: Any) -> list[Any]:
    """The items of a list; a text is ``8,20`` or ``[8, 20]``."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if not isinstance(value, str):
        raise MisfitError
    text = value.strip()
    if text.startswith("["):
        try:
            read = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise MisfitError from None
        return list(read)
    return [part.strip() for part in text.split(",")] if text else []


def _list(value: Any) -> list[Any]:
    items: list[Any] = _anything(_items(value))
    return items


def _name(node: ast.expr) -> str:
    """``int`` of ``int``, ``Optional`` of ``typing.Optional``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parsed(quoted: str) -> ast.expr:
    try:
        return ast.parse(quoted, mode="eval").body
    except SyntaxError:
        raise MisfitError(f"labkit run cannot set a {quoted!r}") from None


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "str": _str,
    "bool": _bool,
    "Any": _anything,
    "list": _list,
    "tuple": _list,
}
