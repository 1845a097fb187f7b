"""RaggedDataset: histories that lie end to end, as a data set whose batches are fetched as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import ShapeError
from labkit.jagged import Array, Jagged
from labkit.layouts.columns import RaggedColumns
from labkit.layouts.features import UNNAMED, as_array


class RaggedDataset:
    """A map-style data set of values and offsets: a batch costs a few gathers, not a walk over its rows.

        data = RaggedDataset({"items": Jagged(items, offsets), "times": Jagged(times, offsets), "label": clicked})
        loader = DataLoader(data, batch_sampler=BucketBatchSampler(data.lengths, policy), collate_fn=collate(policy))

    Packs take it wrapped, as any data set: ``PackedDataset(data)``. A sample is what a data set of single histories
    would give: a mapping of field names to views, or one view of a data set without names.

    Args:
        fields: one ``Jagged``, of samples without names. Or a mapping: a ``Jagged`` for each field with one entry an
            event, oldest first, all with the same offsets; an (N, ...) array for each field of a fixed size.

    Raises:
        ShapeError: no ``Jagged``, fields of other lengths, or values that are no numbers on the CPU.

    Cost: nothing is copied but values that are not contiguous; memory-mapped arrays stay on the disk.
    """

    def __init__(self, fields: Jagged | Mapping[str, Jagged | Array]) -> None:
        """Check that the fields fit together."""
        self.named = not isinstance(fields, Jagged)
        given = fields if isinstance(fields, Mapping) else {UNNAMED: fields}
        jagged = {name: value for name, value in given.items() if isinstance(value, Jagged)}
        if not jagged:
            raise ShapeError(
                f"no field is a Jagged: got {', '.join(given) or 'none'}. Give those with one entry an event as "
                "Jagged(values, offsets)."
            )
        self.events = {name: _contiguous(name, value.values) for name, value in jagged.items()}
        first = next(iter(jagged))
        self.offsets: NDArray[np.int64] = _offsets(jagged[first])
        for name, value in jagged.items():
            if not np.array_equal(_offsets(value), self.offsets):
                raise ShapeError(
                    f"the sequences of one sample must be aligned: {name} has {value.events} events in {len(value)} "
                    f"rows, {first} has {self.offsets[-1]} in {len(self)}, or others in some row."
                )
        self.fixed = {name: _contiguous(name, value) for name, value in given.items() if name not in jagged}
        for name, value in self.fixed.items():
            if value.ndim == 0 or len(value) != len(self):
                raise ShapeError(f"{name} must be ({len(self)}, ...), one entry a sample: got {tuple(value.shape)}.")

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) events of each sample."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """N, the number of samples."""
        return self.offsets.size - 1

    def __getitem__(self, index: int) -> Any:
        """One sample."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int] | NDArray[Any]) -> RaggedColumns:
        """The samples of a batch; DataLoader calls it.

        Raises:
            ShapeError: indices that are no whole numbers.
            IndexError: an index that no sample has.
        """
        return RaggedColumns.of(self.events, self.fixed, self.offsets, indices, named=self.named)


def _offsets(jagged: Jagged) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = np.asarray(jagged.offsets)
    return offsets


def _contiguous(name: str, values: Any) -> Array:
    """An array that a gather reads as it is; checked to be numbers on the CPU."""
    array = as_array(values, name).array
    if isinstance(values, np.ndarray) or not hasattr(values, "contiguous"):
        return np.ascontiguousarray(array) if array.ndim else array
    return values.detach().contiguous()
