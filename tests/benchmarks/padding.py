"""Padding a batch: by hand, by pad_sequence, by the loop of collate, and from values and offsets as on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from labkit.layouts.device_padding import UnpaddedBatch
from labkit.layouts.features import UNNAMED, read_samples
from labkit.layouts.padded import pad_feature, valid_slots
from labkit.lengths.generate import power_law
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import in_turns, repeat

ROWS, LONGEST, WIDTH = 256, 512, 32


def rows_of_events() -> list[NDArray[np.int64]]:
    """Histories of item ids with a heavy tail, one of them of the longest length."""
    lengths = power_law(ROWS, alpha=1.6, max_length=LONGEST, seed=1)
    lengths[0] = LONGEST
    return [np.arange(1, n + 1, dtype=np.int64) for n in lengths.tolist()]


def by_hand(rows: Sequence[Tensor]) -> Tensor:
    """The loop that everybody writes."""
    padded = torch.zeros((len(rows), max(map(len, rows)), *rows[0].shape[1:]), dtype=rows[0].dtype)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def by_torch(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """pad_sequence, and ``valid``, which a model needs as well."""
    padded = pad_sequence(rows, batch_first=True)
    return padded, valid_slots(torch.tensor([len(row) for row in rows]), padded.shape[1])


def by_labkit(rows: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """What collate does for a padded batch: dtypes and shapes of all rows checked, the rectangle, and ``valid``."""
    read = read_samples(rows, None)
    width = int(read.lengths.max())
    feature, shape = read.sequences[UNNAMED], (len(rows), width)
    padded = pad_feature(feature, read.recent(read.lengths, width), shape, padding_value=0, name=UNNAMED)
    return padded, valid_slots(torch.from_numpy(read.lengths), width)


Padded = tuple[Tensor, Tensor]


def against_torch(
    own: Callable[[], Padded], reference: Callable[[], Padded], rows: Sequence[Tensor], quick: bool
) -> Measurement:
    """Both beside each other, once they are equal; the loop by hand in the detail."""
    for mine, other in zip(own(), reference(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)
    torch.testing.assert_close(own()[0], by_hand(rows), rtol=0, atol=0)
    repeats, threads = 21 if quick else 201, torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker of a DataLoader
    try:
        pairs = in_turns(own, reference, repeats, warm_up=5)
        loop = repeat(lambda: by_hand(rows), repeats, warm_up=5)
    finally:
        torch.set_num_threads(threads)
    events = sum(map(len, rows))
    detail = (
        f"{ROWS} rows, {events:,} events in {ROWS * LONGEST:,} slots of {tuple(rows[0].shape[1:]) or 'one id'} and the "
        f"mask, one thread; the rectangle alone, written by hand {1e3 * loop.median:.2f} ms"
    )
    return Measurement.of_pairs(pairs, detail)


def of_arrays(quick: bool) -> Measurement:
    rows = rows_of_events()
    tensors = [torch.from_numpy(row) for row in rows]
    return against_torch(
        lambda: by_labkit(rows), lambda: by_torch([torch.from_numpy(row) for row in rows]), tensors, quick
    )


def of_tensors(quick: bool) -> Measurement:
    rows = [torch.from_numpy(row) for row in rows_of_events()]
    return against_torch(lambda: by_labkit(rows), lambda: by_torch(rows), rows, quick)


def of_values_and_offsets(quick: bool) -> Measurement:
    ids = torch.from_numpy(np.concatenate(rows_of_events()))
    lengths = [len(row) for row in rows_of_events()]
    values = torch.randn(len(ids), WIDTH)
    offsets = torch.from_numpy(np.cumsum([0, *lengths]))
    rows = values.split(lengths)
    batch = UnpaddedBatch(values, offsets, ROWS, LONGEST, None, 0)

    def own() -> Padded:
        padded = batch.padded()
        return padded.values, padded.valid  # type: ignore[return-value]

    return against_torch(own, lambda: by_torch(rows), rows, quick)


ARRAYS = Benchmark("padding-arrays", "NumPy rows, checked and padded, against pad_sequence", Bar(1), of_arrays)
#: NumPy reads a tensor's memory through a view of it, about a microsecond a row, and every row's dtype is looked at;
#: pad_sequence does neither.
TENSORS = Benchmark("padding-tensors", "tensor rows, checked and padded, against pad_sequence", Bar(2), of_tensors)
OFFSETS = Benchmark(
    "padding-offsets", "values and offsets to a rectangle against pad_sequence", Bar(1), of_values_and_offsets
)
