"""RaggedColumns: a batch of samples as columns, fetched and collated without any work a row."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.errors import ShapeError
from labkit.jagged import Array
from labkit.layouts.features import (
    UNNAMED,
    Samples,
    as_array,
    bits,
    read_samples,
    refuse_names,
    refuse_other_shapes,
    refuse_unknown,
)
from labkit.layouts.spans import Spans

#: Events a row, on average, from which on copying slices into a rectangle is faster than a gather and a scatter: ids
#: cross at 150, vectors of 32 floats at 50 (one core of an EPYC server, NumPy 2.4).
LONG_ROW = 128


@dataclass(frozen=True, eq=False, slots=True)
class RaggedColumns(Sequence[Any]):
    """The samples of a batch as places in a few large arrays; nothing is copied until it is collated.

        events {"id": a b c d e}    numbers 2 0    starts 2 0    lengths 3 2    ->    {"id": c d e}, {"id": a b}

    ``collate`` makes of it, in every layout, bit for bit the tensors that it makes of its samples one by one. Anything
    else sees a sequence of these samples, views of the arrays. Pickled, it takes its own events along and no others.

    Attributes:
        events: (T, ...) arrays or CPU tensors, contiguous, one of each field with one entry an event.
        fixed: (N, ...) of each field of a fixed size.
        numbers: (B,) int64, row of each sample in ``fixed``.
        starts: (B,) int64, first event of each sample.
        lengths: (B,) int64, events of each sample.
        named: samples are mappings; else ``events`` has one field, and a sample is a bare array.
    """

    events: Mapping[str, Array]
    fixed: Mapping[str, Array]
    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    named: bool = True

    @classmethod
    def of(
        cls,
        events: Mapping[str, Array],
        fixed: Mapping[str, Array],
        offsets: NDArray[np.int64],
        indices: Sequence[int] | NDArray[Any],
        *,
        named: bool = True,
    ) -> RaggedColumns:
        """The samples with the given indices of N samples that lie end to end.

        Args:
            events: as above.
            fixed: as above.
            offsets: (N + 1,) int64.
            indices: (B,) whole numbers, ints of any kind; negative ones count from the end.
            named: as above.

        Raises:
            ShapeError: indices that are no whole numbers.
            IndexError: an index that no sample has.

        Cost: O(B), whatever the lengths.
        """
        numbers = _numbers(indices, offsets.size - 1)
        starts = offsets[numbers]
        return cls(events, fixed, numbers, starts, offsets[numbers + 1] - starts, named)

    def __len__(self) -> int:
        """B, the number of samples."""
        return self.numbers.size

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> RaggedColumns: ...
    def __getitem__(self, index: int | slice) -> Any:
        """One sample, or columns of several."""
        if isinstance(index, slice):
            return self.take(index)
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"sample {i} does not exist: the batch has {len(self)}.")
        return next(iter(self.take([i % len(self)])))

    def __iter__(self) -> Iterator[Any]:
        """The samples, one by one."""
        stops = (self.starts + self.lengths).tolist()
        for number, start, stop in zip(self.numbers.tolist(), self.starts.tolist(), stops, strict=True):
            sample = {name: values[start:stop] for name, values in self.events.items()}
            if self.named:
                yield sample | {name: values[number] for name, values in self.fixed.items()}
            else:
                yield sample[UNNAMED]

    def take(self, rows: slice | Sequence[int] | NDArray[np.int64]) -> RaggedColumns:
        """The samples in the given rows, in that order. Cost: O(rows)."""
        numbers, starts, lengths = self.numbers[rows], self.starts[rows], self.lengths[rows]
        return RaggedColumns(self.events, self.fixed, numbers, starts, lengths, self.named)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the events of these samples alone, not those of the whole data set."""
        own = Spans(np.zeros_like(self.lengths), self.lengths, None, self.starts)
        events = {name: values[own.source] for name, values in self.events.items()}
        fixed = {name: values[self.numbers] for name, values in self.fixed.items()}
        starts = np.cumsum(self.lengths) - self.lengths
        return RaggedColumns, (events, fixed, np.arange(len(self)), starts, self.lengths, self.named)


def _numbers(indices: Sequence[int] | NDArray[Any], samples: int) -> NDArray[np.int64]:
    numbers = np.asarray(indices)
    if numbers.size == 0:
        return np.zeros(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ShapeError(f"indices must be (B,) whole numbers: got shape {numbers.shape}, {numbers.dtype}.")
    least, most = int(numbers.min()), int(numbers.max())
    if least < -samples or most >= samples:
        wrong = most if most >= samples else least
        raise IndexError(f"sample {wrong} does not exist: the data set has {samples}.")
    numbers = numbers.astype(np.int64, copy=False)
    return numbers if least >= 0 else np.where(numbers < 0, numbers + samples, numbers)


class ColumnFeature(NamedTuple):
    """A field of all samples of a batch, in one array with those of other samples.

    Attributes:
        values: (T, ...) events, or (N, ...) of a fixed-size field; integers stand for types that NumPy lacks.
        dtype: of the values.
        numbers: (B,) int64, row of each sample in a fixed-size field.
    """

    values: NDArray[Any]
    dtype: torch.dtype
    numbers: NDArray[np.int64]

    @property
    def tail(self) -> tuple[int, ...]:
        """Shape of an event, () or (D,); of a fixed-size field its whole shape."""
        return self.values.shape[1:]

    def stacked(self, rows: int) -> Tensor:
        """(R, ...) tensor of a fixed-size field; rows beyond B are zero. Cost: one gather."""
        out = torch.zeros((rows, *self.tail), dtype=self.dtype)
        self._gather(self.numbers, bits(out)[: self.numbers.size])
        return out

    def end_to_end(self, spans: Spans) -> Tensor:
        """(T,) or (T, D). Cost: one allocation, one gather."""
        out = torch.empty((spans.events, *self.tail), dtype=self.dtype)
        self._gather(spans.source, bits(out))
        return out

    def copy_to(self, cells: NDArray[Any], spans: Spans) -> None:
        """Copy the events of all spans into (slots,) or (slots, D).

        Cost: one gather and one scatter; where rows are long, one slice copy a row, which then is less.
        """
        if spans.slots is not None and spans.events >= LONG_ROW * spans.kept.size:
            begins = spans.place.tolist()
            for begin, n, slot in zip(begins, spans.kept.tolist(), spans.slots.tolist(), strict=True):
                cells[slot : slot + n] = self.values[begin : begin + n]
        else:
            cells[spans.target] = self.values.take(spans.source, axis=0)

    def _gather(self, places: NDArray[np.int64], out: NDArray[Any]) -> None:
        # places are within the array; "raise" would gather into a buffer first
        self.values.take(places, axis=0, out=out, mode="clip")


def read_columns(columns: RaggedColumns, sequences: tuple[str, ...] | None) -> Samples:
    """A batch of columns as features.

    Args:
        columns: B >= 1 samples.
        sequences: the fields with one entry an event; None: those that the columns have.

    Raises:
        ShapeError: other ``sequences`` than the columns have, or values that are no (T,) or (T, D) numbers on the CPU.

    Cost: O(fields).
    """
    if not columns.named:
        refuse_names(sequences, columns.events[UNNAMED])
    elif sequences is not None:
        refuse_unknown(sequences, [*columns.events, *columns.fixed])
    if sequences is not None and set(sequences) != set(columns.events):
        raise ShapeError(
            f"sequences= must name the fields with one entry an event: expected {', '.join(columns.events)}, got "
            f"{', '.join(sequences)}. The samples are columns, which know: leave sequences= out."
        )
    events = {name: _feature(name, values, columns) for name, values in columns.events.items()}
    for name, feature in events.items():
        refuse_other_shapes(name, (feature.values.shape,))
    fixed = {name: _feature(name, values, columns) for name, values in columns.fixed.items()}
    return Samples(events, fixed, columns.lengths, columns.named, columns.starts)


def _feature(name: str, values: Any, columns: RaggedColumns) -> ColumnFeature:
    value = as_array(values, name)
    return ColumnFeature(value.array, value.dtype, columns.numbers)


def read_batch(samples: Sequence[Any], sequences: tuple[str, ...] | None) -> Samples:
    """Samples as features, column by column where they are columns; see ``read_samples`` and ``read_columns``."""
    if isinstance(samples, RaggedColumns):
        return read_columns(samples, sequences)
    return read_samples(samples, sequences)
