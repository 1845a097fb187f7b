"""The one gate through which sequence lengths come in: an integer array, checked, never copied without need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.errors import LengthsError

MAX_LENGTH = 2**31 - 1

#: Elements looked at together where a temporary copy would otherwise double the memory of a large array.
CHUNK = 1 << 20


def checked_lengths(lengths: ArrayLike, *, what: str = "lengths") -> NDArray[Any]:
    """Return ``lengths`` as a one-dimensional integer array with every value in 0 .. 2**31 - 1.

    Args:
        lengths: (N,) integers, or floats that are whole numbers; zero is a legal length.
        what: the word for it in error messages.

    Returns:
        (N,) integer array; an integer array comes back as it is (no copy), float64 becomes int64.

    Raises:
        LengthsError: empty, not one-dimensional, not numeric, NaN, fractional, negative or above 2**31 - 1;
            the message has the first index and the value.

    Cost: two passes over integers, three over floats; no temporary larger than a chunk for integers.
    """
    array = np.asarray(lengths)
    if array.ndim != 1:
        raise LengthsError(f"{what} must be one-dimensional: got shape {array.shape}. Pass one length per sequence.")
    if array.size == 0:
        raise LengthsError(f"{what} are empty: at least one sequence is needed.")
    if array.dtype.kind == "f":
        array = _whole_numbers(array, what)
    elif array.dtype.kind not in "iu":
        raise LengthsError(f"{what} must be whole numbers: got dtype {array.dtype}. Convert them to integers first.")
    if int(array.min()) < 0:
        _refuse(array, np.flatnonzero(array < 0), what, "is negative; a sequence has 0 events or more")
    if int(array.max()) > MAX_LENGTH:
        _refuse(array, np.flatnonzero(array > MAX_LENGTH), what, f"is above 2**31 - 1 = {MAX_LENGTH}")
    return array


def _whole_numbers(array: NDArray[Any], what: str) -> NDArray[np.int64]:
    if not np.isfinite(array).all():
        _refuse(array, np.flatnonzero(~np.isfinite(array)), what, "is not a finite number")
    fractional = array != np.rint(array)
    if fractional.any():
        _refuse(array, np.flatnonzero(fractional), what, "is not a whole number")
    beyond = np.abs(array) > MAX_LENGTH
    if beyond.any():  # before the cast, which would wrap around
        _refuse(array, np.flatnonzero(beyond), what, f"is outside 0 .. 2**31 - 1 = {MAX_LENGTH}")
    return array.astype(np.int64)


def _refuse(array: NDArray[Any], bad: NDArray[np.intp], what: str, why: str) -> None:
    first = int(bad[0])
    more = f" ({bad.size} such values)" if bad.size > 1 else ""
    raise LengthsError(f"{what}[{first}] = {array[first]} {why}{more}. Fix or filter the input.")
