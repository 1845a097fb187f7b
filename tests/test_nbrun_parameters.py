"""Parameters of a notebook: what its cell declares, and which values fit. No kernel is started here."""

from __future__ import annotations

import enum
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import NotebookError
from labkit.nbrun.parameters import checked_parameters, declared_parameters

CELL = """
import os
preset: str = "ml-100k"  # name of a data set
rows: int = 256  # sequences a batch, 1..
alpha: float = 1.5
shuffle: bool = True
cap: int | None = None
lengths_file: "Optional[str]" = None
edges: list[int] = [8, 20]
quantiles: tuple[float, ...] = (0.2, 0.8)
pair: tuple[int, str] = (1, "a")
by: Literal["optimal", "quantile", 3] = "optimal"
either: int | str = 3
count = 3
share = -0.5
name = "x"
flag = False
numbers = [1, 2]
nothing = None
table: dict[str, int] = {}
computed = 3 * 1024
"""
DECLARED = declared_parameters(CELL)


def fit(name: str, value: Any) -> Any:
    return checked_parameters(DECLARED, {name: value})[name]


def test_every_assignment_is_a_parameter_in_order() -> None:
    names = re.findall(r"^(\w+)(?=:| =)", CELL, flags=re.MULTILINE)
    assert list(DECLARED) == names
    assert (names[0], names[-1], len(names)) == ("preset", "computed", 19)


def test_a_plain_assignment_has_the_type_of_its_value() -> None:
    types = {name: DECLARED[name].type_text for name in ("count", "share", "name", "flag", "numbers", "nothing")}
    assert types == {
        "count": "int", "share": "float", "name": "str", "flag": "bool", "numbers": "list[int]", "nothing": "Any",
    }  # fmt: skip


class Key(enum.StrEnum):
    CDNOW = "cdnow"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rows", "64", 64),
        ("rows", "-1", -1),
        ("rows", np.int64(3), 3),
        ("rows", np.uint8(3), 3),
        ("count", np.int32(3), 3),
        ("alpha", "1.7", 1.7),
        ("alpha", "2", 2.0),
        ("alpha", 2, 2.0),
        ("alpha", np.float32(0.5), 0.5),
        ("shuffle", "false", False),
        ("shuffle", "True", True),
        ("shuffle", np.True_, True),
        ("flag", "true", True),
        ("preset", "3", "3"),
        ("preset", "", ""),
        ("preset", "true", "true"),
        ("preset", Key.CDNOW, "cdnow"),
        ("preset", Path("/srv/x"), "/srv/x"),
        ("cap", "50", 50),
        ("cap", "none", None),
        ("cap", None, None),
        ("cap", np.int64(5), 5),
        ("lengths_file", "a.csv", "a.csv"),
        ("lengths_file", "none", None),
        ("edges", "8,20,50", [8, 20, 50]),
        ("edges", "[8, 20]", [8, 20]),
        ("edges", "", []),
        ("edges", np.array([8, 20]), [8, 20]),
        ("edges", (np.int64(8),), [8]),
        ("quantiles", ".2, .8", [0.2, 0.8]),
        ("pair", "3,b", [3, "b"]),
        ("by", "quantile", "quantile"),
        ("by", "3", 3),
        ("either", "4", 4),
        ("either", "four", "four"),
        ("nothing", "text", "text"),
        ("nothing", [1, np.float64(2.5)], [1, 2.5]),
        ("numbers", "1,2", [1, 2]),
    ],
)
def test_values_that_fit(name: str, value: Any, expected: Any) -> None:
    found = fit(name, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows", "many", "parameter 'rows' must be int: got 'many'."),
        ("rows", "3.0", "parameter 'rows' must be int: got '3.0'."),
        ("rows", 3.5, "parameter 'rows' must be int: got 3.5."),
        ("rows", 3.0, "parameter 'rows' must be int: got 3.0."),
        ("rows", True, "parameter 'rows' must be int: got True."),
        ("rows", None, "parameter 'rows' must be int: got None."),
        ("rows", "none", "parameter 'rows' must be int: got 'none'."),
        ("rows", "", "parameter 'rows' must be int: got ''."),
        ("rows", [3], "parameter 'rows' must be int: got [3]."),
        ("count", "three", "parameter 'count' must be int: got 'three'."),
        ("alpha", "nan", "parameter 'alpha' must be float: got 'nan' (not a finite number)."),
        ("alpha", math.inf, "parameter 'alpha' must be float: got inf (not a finite number)."),
        ("alpha", np.float64("nan"), "parameter 'alpha' must be float: got np.float64(nan) (not a finite number)."),
        ("alpha", True, "parameter 'alpha' must be float: got True."),
        ("shuffle", "yes", "parameter 'shuffle' must be bool: got 'yes' (write true or false)."),
        ("shuffle", "1", "parameter 'shuffle' must be bool: got '1' (write true or false)."),
        ("shuffle", 1, "parameter 'shuffle' must be bool: got 1 (write true or false)."),
        ("preset", 3, "parameter 'preset' must be str: got 3."),
        ("cap", "wide", "parameter 'cap' must be int | None: got 'wide'."),
        ("cap", 2.5, "parameter 'cap' must be int | None: got 2.5."),
        ("edges", "8,x", "parameter 'edges' must be list[int]: got '8,x'."),
        ("edges", "[8", "parameter 'edges' must be list[int]: got '[8'."),
        ("edges", 8, "parameter 'edges' must be list[int]: got 8."),
        (
            "quantiles",
            [0.5, math.nan],
            ("parameter 'quantiles' must be tuple[float, ...]: got [0.5, nan] (not a finite number)."),
        ),
        ("pair", "3", "parameter 'pair' must be tuple[int, str]: got '3' (1 items)."),
        ("by", "best", "parameter 'by' must be Literal['optimal', 'quantile', 3]: got 'best'."),
        ("nothing", math.nan, "parameter 'nothing' must be Any: got nan (not a finite number)."),
        ("nothing", {}, "parameter 'nothing' must be Any: got {} (a dict cannot be written into a notebook)."),
        ("table", "{}", "parameter 'table' must be dict[str, int]: got '{}' (labkit run cannot set a dict[str, int])."),
        ("computed", "3", "parameter 'computed' cannot be set: it has no type. Annotate it in the notebook."),
    ],
)
def test_values_that_do_not_fit_are_named_with_the_type(name: str, value: Any, message: str) -> None:
    with pytest.raises(NotebookError, match=f"^{re.escape(message)}$"):
        fit(name, value)


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    declared = declared_parameters("rows: int = 3\npreset = 'x'")
    with pytest.raises(
        NotebookError, match=r"^unknown parameter 'rowz': did you mean 'rows'\? The notebook declares rows, preset\.$"
    ):
        checked_parameters(declared, {"rowz": 3})
    with pytest.raises(NotebookError, match=r"^unknown parameter 'zzz': The notebook declares rows, preset\.$"):
        checked_parameters(declared, {"rows": "x", "zzz": 3})
    with pytest.raises(NotebookError, match=r"^unknown parameter 'rows': the notebook has no cell tagged 'parameters'"):
        checked_parameters({}, {"rows": 3})


def test_a_parameter_without_a_default_is_required() -> None:
    declared = declared_parameters("path: str\nrows: int = 3")
    with pytest.raises(NotebookError, match=r"^parameter 'path' has no default: give it a value \(str\)\.$"):
        checked_parameters(declared, {"rows": 3})
    assert checked_parameters(declared, {"path": "x"}) == {"path": "x"}


def test_a_cell_that_is_not_python_is_refused() -> None:
    with pytest.raises(
        NotebookError, match=r"^the parameters cell is not plain Python: invalid syntax in its line 2\.$"
    ):
        declared_parameters("rows: int = 3\n%matplotlib inline\n")


@given(st.integers())
def test_every_integer_comes_through_as_text_and_as_a_number(number: int) -> None:
    assert fit("rows", str(number)) == fit("rows", number) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_through_as_text_and_as_a_number(number: float) -> None:
    assert fit("alpha", repr(number)) == fit("alpha", np.float64(number)) == number
