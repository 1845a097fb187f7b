"""Jagged: rows of different lengths end to end, and the one validator of offsets."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from labkit.errors import ShapeError

#: A NumPy array or a torch tensor. torch is never imported here: who has a tensor has loaded it.
Array: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Jagged:
    """Rows of different lengths end to end.

        values  a b c d e    row 0   a b
        offsets 0 2 2 5      row 1   (empty)
        lengths 2 0 3        row 2   c d e

    Row b is ``values[offsets[b]:offsets[b + 1]]``. Empty rows, B = 0 and T = 0 are legal.

    Attributes:
        values: (T,) or (T, D), a NumPy array or a torch tensor; not copied.
        offsets: (B + 1,) int64, of the same family and on the same device.

    Raises:
        ShapeError: values of another shape, two families or devices, or what ``validate_offsets`` refuses.

    Cost: O(B); one copy of the offsets to the host where they are on a device.
    """

    values: Array
    offsets: Array

    def __post_init__(self) -> None:
        """Check both arrays; offsets of another integer type become int64."""
        family = _family(self.values, "values")
        if self.values.ndim not in (1, 2):
            raise ShapeError(f"values must be (T,) or (T, D): got shape {tuple(self.values.shape)}. Reshape them.")
        if _family(self.offsets, "offsets") is not family:
            names = f"{type(self.values).__name__} and {type(self.offsets).__name__}"
            raise ShapeError(f"values and offsets must be of one family: got {names}. Convert one of them.")
        if family is not np and self.values.device != self.offsets.device:
            places = f"{self.values.device} and {self.offsets.device}"
            raise ShapeError(f"values and offsets must be on one device: got {places}. Move one of them.")
        offsets = validate_offsets(self.offsets, len(self.values), shape=tuple(self.values.shape))
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def from_lengths(cls, values: Array, lengths: ArrayLike | Array) -> Jagged:
        """Cut (T,) or (T, D) values into rows of the given lengths.

            values a b c d e    lengths 2 0 3    ->    offsets 0 2 2 5

        Args:
            values: the events of all rows, row after row.
            lengths: (B,) whole numbers >= 0 that add up to T.

        Raises:
            ShapeError: lengths that are negative, not whole, or do not add up to T.
        """
        family = _family(values, "values")
        own = _to_host(lengths) if _is_tensor(lengths) else np.asarray(lengths)
        own = own.astype(np.int64) if own.size == 0 else own
        if own.ndim != 1 or own.dtype.kind not in "iu":
            raise ShapeError(f"lengths must be (B,) whole numbers: got shape {own.shape}, dtype {own.dtype}.")
        if own.size and int(own.min()) < 0:
            first = int(np.argmax(own < 0))
            raise ShapeError(f"lengths must be 0 or more: got lengths[{first}] == {own[first]}.")
        total = int(own.sum(dtype=np.int64))
        if total != len(values):
            raise ShapeError(
                f"lengths must add up to T: expected {len(values)}, got {total} "
                f"(values {tuple(values.shape)}, B={own.size}). Count the events of each row again."
            )
        offsets = _offsets(own)
        return cls(values, offsets if family is np else family.from_numpy(offsets).to(values.device))

    @classmethod
    def from_rows(cls, rows: Sequence[Any]) -> Jagged:
        """Put rows end to end: arrays, tensors or lists, each (n,) or (n, D); an empty list fits any other row.

        Raises:
            ShapeError: no row at all (nothing says dtype and D), rows of two families or of different D.

        Cost: one copy of the values.
        """
        if not len(rows):
            raise ShapeError("from_rows needs at least one row, which says dtype and D: got none. Use from_lengths.")
        tensors = [_is_tensor(row) for row in rows]
        if any(tensors) and not all(tensors):
            raise ShapeError("rows must be of one family: got tensors and others. Convert them.")
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        full = [row for row in rows if not isinstance(row, list) or row] or [np.zeros(0, dtype=np.int64)]
        try:
            values = sys.modules["torch"].cat(list(rows)) if all(tensors) else np.concatenate(full)
        except (ValueError, RuntimeError) as error:
            raise ShapeError(f"rows must all be (n,), or all (n, D): {str(error).splitlines()[0]}") from None
        return cls.from_lengths(values, lengths)

    # -- sizes and rows -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """B, the number of rows."""
        return len(self.offsets) - 1

    @property
    def events(self) -> int:
        """T, the number of events of all rows."""
        return len(self.values)

    @property
    def lengths(self) -> Array:
        """(B,) int64, events of each row."""
        return self.offsets[1:] - self.offsets[:-1]

    def __getitem__(self, row: int) -> Array:
        """Events of one row, a view; negative rows count from the end."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} does not exist: there are {len(self)} rows.")
        row %= len(self)
        return self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def __iter__(self) -> Iterator[Array]:
        """The rows, views of ``values``."""
        bounds = self.offsets.tolist()
        return (self.values[low:high] for low, high in pairwise(bounds))

    def recent(self, n: int) -> Jagged:
        """Cap each row to its ``n`` most recent events; rows are oldest first.

            a b | | c d e    n=2 -> a b | | d e

        Args:
            n: events to keep of a row, >= 0.

        Returns:
            A new Jagged with the same number of rows.

        Raises:
            ShapeError: n below 0 or not whole.

        Cost: O(B) on the host, one gather of the kept events.
        """
        n = _cap(n)
        offsets = _to_host(self.offsets)
        kept = np.minimum(np.diff(offsets), n)
        ends = np.cumsum(kept)
        # a kept event's place in the old values, minus its place in the new ones, is the same for a whole row
        index = np.repeat(offsets[1:] - ends, kept) + np.arange(kept.sum())
        if _is_tensor(self.values):
            index = sys.modules["torch"].from_numpy(index).to(self.values.device)
        return Jagged.from_lengths(self.values[index], kept)

    def __repr__(self) -> str:
        """Sizes, not contents."""
        return f"Jagged(B={len(self)}, values {tuple(self.values.shape)} {self.values.dtype})"


def validate_offsets(offsets: Array, total: int, *, shape: tuple[int, ...] | None = None) -> Array:
    """Return offsets as int64 if they cut ``total`` values into rows: the one place that knows the rules.

    Args:
        offsets: (B + 1,) integers, a NumPy array or a torch tensor.
        total: T, the number of values.
        shape: of the values, for the message; (T,) by default.

    Returns:
        ``offsets`` as int64; itself where it is int64 already.

    Raises:
        ShapeError: not integers, not one-dimensional, no entry, ``offsets[0] != 0``, a decrease, or
            ``offsets[-1] != total``; the message has the numbers.

    Cost: O(B); one copy to the host where the offsets are on a device (so not inside a CUDA-graph capture).
    """
    host = _to_host(offsets) if _family(offsets, "offsets") is not np else offsets
    if host.dtype.kind not in "iu":
        raise ShapeError(f"offsets must be whole numbers: expected an integer dtype, got {offsets.dtype}. Use int64.")
    if host.ndim != 1:
        raise ShapeError(f"offsets must be one-dimensional: expected (B+1,), got {tuple(host.shape)}. Flatten them.")
    if host.size == 0:
        raise ShapeError("offsets must have B+1 entries: expected at least 1, got 0. For no rows (B=0) they are [0].")
    own = host.astype(np.int64, copy=False)
    given = f"(values {(total,) if shape is None else shape}, B={own.size - 1}). Rebuild with Jagged.from_lengths."
    if own[0] != 0:
        raise ShapeError(f"offsets must start at 0: expected offsets[0] == 0, got {own[0]} {given}")
    down = own[1:] < own[:-1]
    if down.any():
        i = int(np.argmax(down)) + 1
        expected = f"expected offsets[{i}] >= offsets[{i - 1}] == {own[i - 1]}"
        raise ShapeError(f"offsets must not decrease: {expected}, got {own[i]} {given}")
    if own[-1] != total:
        raise ShapeError(f"offsets must end at T: expected offsets[-1] == {total}, got {own[-1]} {given}")
    return own if isinstance(offsets, np.ndarray) else offsets.long()


def _offsets(lengths: Array) -> Array:
    offsets = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _cap(n: int) -> int:
    try:
        n = operator.index(n)
    except TypeError:
        raise ShapeError(f"n must be a whole number: got {n!r} ({type(n).__name__}).") from None
    if n < 0:
        raise ShapeError(f"n must be 0 or more: got {n}.")
    return n


def _is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _family(array: Any, what: str) -> Any:
    """The module that an array belongs to: NumPy or torch."""
    if isinstance(array, np.ndarray):
        return np
    if _is_tensor(array):
        return sys.modules["torch"]
    kind = type(array).__name__
    raise ShapeError(f"{what} must be a NumPy array or a torch tensor: got {kind}. Use Jagged.from_rows for lists.")


def _to_host(tensor: Array) -> Array:
    """A NumPy view of an array, or a copy where it is on a device; bfloat16, which NumPy lacks, as float32."""
    if isinstance(tensor, np.ndarray):
        return tensor
    own = tensor.detach().cpu()
    return (own.float() if own.is_floating_point() else own).numpy()
