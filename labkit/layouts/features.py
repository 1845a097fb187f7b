"""Samples of a data set as features: one dtype and D a field, lengths counted by events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.errors import ShapeError
from labkit.layouts.spans import Spans

#: The field of samples that have no names.
UNNAMED = "history"


class Feature(Protocol):
    """One field of all samples of a batch, however they are stored."""

    @property
    def dtype(self) -> torch.dtype:
        """Of all rows."""
        ...

    @property
    def tail(self) -> tuple[int, ...]:
        """Shape of an event, () or (D,); of a fixed-size field its whole shape."""
        ...

    def stacked(self, rows: int) -> Tensor:
        """(R, ...) tensor of a fixed-size field; rows beyond B are zero."""
        ...

    def end_to_end(self, spans: Spans) -> Tensor:
        """(T,) or (T, D): the events of all spans, row after row."""
        ...

    def copy_to(self, cells: NDArray[Any], spans: Spans) -> None:
        """Copy the events of all spans into (slots,) or (slots, D)."""
        ...


class RowFeature(NamedTuple):
    """A field whose rows are arrays by themselves.

    Attributes:
        rows: B views; those of types that NumPy lacks (bfloat16) are integers of the same size.
        dtype: of all rows.
        tail: shape of an event: () or (D,); of a fixed-size field its whole shape.
    """

    rows: list[NDArray[Any]]
    dtype: torch.dtype
    tail: tuple[int, ...]

    def stacked(self, rows: int) -> Tensor:
        """(R, ...) tensor of a fixed-size field; rows beyond B are zero."""
        out = torch.zeros((rows, *self.tail), dtype=self.dtype)
        np.stack(self.rows, out=bits(out)[: len(self.rows)], casting="unsafe")
        return out

    def end_to_end(self, spans: Spans) -> Tensor:
        """(T,) or (T, D). Cost: one allocation, one slice copy a row."""
        values = torch.empty((spans.events, *self.tail), dtype=self.dtype)
        bounds = zip(self.rows, spans.first.tolist(), spans.kept.tolist(), strict=True)
        parts = [row[first : first + n] for row, first, n in bounds if n]  # an empty list says nothing about D
        if parts:
            np.concatenate(parts, out=bits(values), casting="unsafe")
        return values

    def copy_to(self, cells: NDArray[Any], spans: Spans) -> None:
        """Copy the events of all spans into (slots,) or (slots, D). Cost: one slice copy a row."""
        if spans.slots is None:
            raise AssertionError("spans without slots lie end to end")
        bounds = zip(self.rows, spans.first.tolist(), spans.kept.tolist(), spans.slots.tolist(), strict=True)
        for row, first, n, slot in bounds:
            if n:
                cells[slot : slot + n] = row[first : first + n]


@dataclass(frozen=True, slots=True)
class Samples:
    """A batch of samples, field by field.

    Attributes:
        sequences: the fields with one entry an event.
        fixed: the fields of a fixed size.
        lengths: (B,) int64, events of each sample: entries counted, whatever their value.
        named: samples are mappings.
        starts: (B,) int64, where each sample begins in its columns; None: samples are arrays by themselves.
    """

    sequences: Mapping[str, Feature]
    fixed: Mapping[str, Feature]
    lengths: NDArray[np.int64]
    named: bool
    starts: NDArray[np.int64] | None = None

    def recent(self, kept: NDArray[np.int64], width: int | None = None) -> Spans:
        """The most recent ``kept[b]`` events of each sample, in rows of ``width`` slots; None: end to end."""
        slots = None if width is None else np.arange(kept.size) * width
        return Spans(self.lengths - kept, kept, slots, self.starts)

    def with_fixed(self, sequences: dict[str, Tensor], rows: int) -> Tensor | dict[str, Tensor]:
        """Values of a batch: its sequences, and beside them stacked fields of a fixed size; bare without names."""
        if not self.named:
            return sequences[UNNAMED]
        return sequences | {name: feature.stacked(rows) for name, feature in self.fixed.items()}


def read_samples(samples: Sequence[Any], sequences: tuple[str, ...] | None) -> Samples:
    """Sort a batch of samples into features.

    Args:
        samples: B >= 1 histories, or B mappings of field name -> history, array or number.
        sequences: the fields with one entry an event; None: every field with at least one dimension.

    Raises:
        ShapeError: samples of another kind, fields that differ between samples, sequences of one sample with
            different numbers of events, mixed dtypes or widths.

    Cost: O(B) per field; no event is copied, except those of lists.
    """
    named = isinstance(samples[0], Mapping)
    if not named:
        refuse_names(sequences, samples[0])
    rows = _by_field(samples) if named else {UNNAMED: [as_array(sample, UNNAMED) for sample in samples]}
    if sequences is None:
        sequences = tuple(name for name, values in rows.items() if values[0].array.ndim) if named else (UNNAMED,)
    refuse_unknown(sequences, rows)
    ragged = {name: _row_feature(name, rows[name], sequence=True) for name in rows if name in sequences}
    fixed = {name: _row_feature(name, rows[name], sequence=False) for name in rows if name not in sequences}
    return Samples(ragged, fixed, _aligned_lengths(ragged), named)


def refuse_names(sequences: tuple[str, ...] | None, sample: Any) -> None:
    """Raise a ShapeError where fields are named, but samples have none."""
    if sequences is not None:
        raise ShapeError(f"sequences={sequences} names fields, but a sample is a bare {type(sample).__name__}.")


def refuse_unknown(sequences: tuple[str, ...], fields: Collection[str]) -> None:
    """Raise a ShapeError for sequences that are no fields, or where none is named."""
    unknown = [name for name in sequences if name not in fields]
    if unknown or not sequences:
        what = f"sequences name {', '.join(unknown)}" if unknown else "no field is a sequence"
        raise ShapeError(f"{what}: the samples have {', '.join(fields)}. Name the fields with one entry an event.")


class Value(NamedTuple):
    """An array, and where its dtype comes from."""

    array: NDArray[Any]
    dtype: torch.dtype
    plain: bool  # from Python numbers, whose dtype is a guess


def _by_field(samples: Sequence[Any]) -> dict[str, list[Value]]:
    names = list(samples[0])
    for i, sample in enumerate(samples):
        if not isinstance(sample, Mapping) or set(sample) != set(names):
            got = ", ".join(map(str, sample)) if isinstance(sample, Mapping) else f"a {type(sample).__name__}"
            raise ShapeError(
                f"samples of a batch must have the same fields: expected {', '.join(names)}, got {got} ({i})."
            )
    return {name: [as_array(sample[name], name) for sample in samples] for name in names}


def as_array(value: Any, name: str) -> Value:
    """A NumPy view of a value of that field, or a copy of a list.

    Raises:
        ShapeError: what is no array of numbers or booleans on the CPU.
    """
    if isinstance(value, np.ndarray):
        return Value(value, _torch_dtype(value.dtype, name), plain=False)
    if isinstance(value, Tensor):
        if not value.is_cpu:
            raise ShapeError(
                f"{name} is on {value.device}: samples must be on the CPU. Move the batch, not the samples."
            )
        return Value(bits(value), value.dtype, plain=False)
    if isinstance(value, tuple):
        raise ShapeError(f"{name} is a tuple, which may mean anything: give an array, or a dict of named fields.")
    plain = isinstance(value, list | int | float) and not isinstance(value, np.generic)
    try:
        array = np.asarray(value)
    except ValueError:
        raise ShapeError(f"{name} is a list of rows of different lengths: give (T,) or (T, D).") from None
    if plain and array.dtype == np.float64:
        array = array.astype(np.int64 if array.size == 0 else np.float32)
    return Value(array, _torch_dtype(array.dtype, name), plain)


def _row_feature(name: str, values: list[Value], *, sequence: bool) -> RowFeature:
    """Check that the values of a field fit together."""
    # an empty list says nothing about dtype and D
    telling = [v for v in values if not (sequence and v.plain and v.array.shape == (0,))] or values[:1]
    dtypes = {value.dtype for value in telling}
    if len(dtypes) > 1 and not all(value.plain for value in telling):
        raise ShapeError(f"{name} has several dtypes, {', '.join(sorted(map(str, dtypes)))}: give all samples one.")
    dtype = telling[0].dtype
    for other in dtypes:
        dtype = torch.promote_types(dtype, other)
    if sequence:
        refuse_other_shapes(name, (value.array.shape for value in telling))
    tails = {value.array.shape[1:] if sequence else value.array.shape for value in telling}
    if len(tails) > 1:
        what = "events of different shapes" if sequence else "different shapes and is no sequence (see sequences=)"
        raise ShapeError(f"{name} has {what}: {', '.join(map(str, sorted(tails)))}.")
    return RowFeature([value.array for value in values], dtype, tails.pop())


def refuse_other_shapes(name: str, shapes: Iterable[tuple[int, ...]]) -> None:
    """Raise a ShapeError for sequences that are neither (T,) nor (T, D)."""
    for shape in shapes:
        if len(shape) not in (1, 2):
            raise ShapeError(
                f"{name} must be (T,) or (T, D): got shape {shape}. Fixed-size fields are those not in sequences=."
            )


def _aligned_lengths(features: dict[str, RowFeature]) -> NDArray[np.int64]:
    """(B,) events of each sample, the same in all its sequences."""
    counts = {name: np.array([len(row) for row in feature.rows], np.int64) for name, feature in features.items()}
    (first, lengths), *others = counts.items()
    for name, own in others:
        if not np.array_equal(own, lengths):
            i = int(np.argmax(own != lengths))
            raise ShapeError(
                f"sequences of one sample must be aligned: {first} has {lengths[i]} events, {name} has {own[i]} "
                f"(sample {i} of the batch). Name the fields with one entry an event: sequences=({first!r}, ...)."
            )
    return lengths


def bits(tensor: Tensor) -> NDArray[Any]:
    """A NumPy view of a CPU tensor's memory; types that NumPy lacks (bfloat16) as integers of the same size."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    stand_in = _stand_in(tensor.dtype)
    view: NDArray[Any] = (tensor if stand_in is None else tensor.view(stand_in)).numpy()
    return view


@cache
def _stand_in(dtype: torch.dtype) -> torch.dtype | None:
    try:
        torch.empty(0, dtype=dtype).numpy()
    except TypeError:
        return {1: torch.uint8, 2: torch.int16}[dtype.itemsize]
    return None


@cache
def _torch_dtype(dtype: np.dtype[Any], name: str) -> torch.dtype:
    try:
        return torch.from_numpy(np.empty(0, dtype)).dtype
    except (TypeError, ValueError):
        raise ShapeError(f"{name} has dtype {dtype}, which torch lacks: give numbers or booleans.") from None
