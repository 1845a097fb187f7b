"""The parameters cell of a notebook, read without running it, and the values that it is given, checked against it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labkit.errors import NotebookError
from labkit.nbrun.values import MisfitError, fitted
from labkit.units import shown


@dataclass(frozen=True, slots=True)
class Parameter:
    """One assignment of the parameters cell: ``name: type = value  # unit, range``.

    Attributes:
        name: of the variable.
        type: its annotation, or the type of its literal value; None where neither tells it.
        required: it is declared without a value.
        default: its value in the notebook, where that is a literal.
        has_default: whether it is.
    """

    name: str
    type: ast.expr | None
    required: bool = False
    default: Any = None
    has_default: bool = False

    @property
    def type_text(self) -> str:
        """The type as it is written."""
        return "a value of unknown type" if self.type is None else ast.unparse(self.type)


def declared_parameters(source: str) -> dict[str, Parameter]:
    """The parameters that a cell declares, by name, in order.

        rows: int = 256        -> rows, int
        preset = "ml-100k"     -> preset, str, by its value

    Raises:
        NotebookError: the cell is not plain Python.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise NotebookError(
            f"the parameters cell is not plain Python: {error.msg} in its line {error.lineno}."
        ) from None
    found: dict[str, Parameter] = {}
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                found[name] = Parameter(name, annotation, value is None, *_literal(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = Parameter(name, _type_of_literal(value), False, *_literal(value))
    return found


def checked_parameters(declared: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values as plain Python values of their declared types.

    A text becomes what the declaration says (``"3"`` an int, ``"true"`` a bool, ``"8,20"`` a list[int]), NumPy numbers
    become plain ones. Nothing else is converted: 3.5 is no int, 1 is no bool.

    Args:
        declared: the parameters of the notebook.
        given: values by name.

    Raises:
        NotebookError: a name that is not declared (those that are, are named), a value that is not of its type, a
            required parameter without one.
    """
    for name in given:
        if name not in declared:
            raise NotebookError(_unknown(name, declared))
    missing = [p.name for p in declared.values() if p.required and p.name not in given]
    if missing:
        raise NotebookError(
            f"parameter {missing[0]!r} has no default: give it a value ({declared[missing[0]].type_text})."
        )
    return {name: _checked(declared[name], value) for name, value in given.items()}


def _checked(parameter: Parameter, value: Any) -> Any:
    if parameter.type is None:
        raise NotebookError(f"parameter {parameter.name!r} cannot be set: it has no type. Annotate it in the notebook.")
    try:
        return fitted(parameter.type, value)
    except MisfitError as misfit:
        why = f" ({misfit})" if str(misfit) else ""
        raise NotebookError(
            f"parameter {parameter.name!r} must be {parameter.type_text}: got {shown(value)}{why}."
        ) from None


def _unknown(name: str, declared: Iterable[str]) -> str:
    known = list(declared)
    if not known:
        return f"unknown parameter {shown(name)}: the notebook has no cell tagged 'parameters' that declares any."
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown parameter {shown(name)}: {hint}The notebook declares {', '.join(known)}."


def _literal(node: ast.expr | None) -> tuple[Any, bool]:
    """The value of a literal, and whether it is one."""
    try:
        return (None, False) if node is None else (ast.literal_eval(node), True)
    except ValueError:
        return None, False


def _type_of_literal(node: ast.expr) -> ast.expr | None:
    """The annotation that a literal value would have had."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    text = _type_text(value)
    return None if text is None else ast.parse(text, mode="eval").body


def _type_text(value: Any) -> str | None:
    if value is None:
        return "Any"
    if isinstance(value, (bool, int, float, str)):
        return type(value).__name__
    if isinstance(value, (list, tuple)):
        inner = {_type_text(item) for item in value}
        only = inner.pop() if len(inner) == 1 else "Any"
        return None if only is None else f"list[{only}]"
    return None
