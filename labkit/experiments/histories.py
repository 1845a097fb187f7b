"""Histories: a data set of ragged samples kept end to end, real or made up for the fields of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.errors import ShapeError
from labkit.jagged import Jagged
from labkit.layouts.columns import RaggedColumns
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import checked_lengths
from labkit.models.registry import FieldSpec, ModelSpec


@dataclass(frozen=True, eq=False)
class Histories:
    """A map-style data set: a sample is a mapping of field names to views of a few large arrays.

        items 5 9 9 2 7    offsets 0 2 2 5    ->    {"items": [5 9]}, {"items": []}, {"items": [9 2 7]}

    Attributes:
        events: (T, ...) of each field with one entry an event.
        rows: (N, ...) of each field of a fixed size.
        offsets: (N + 1,) int64, sample i has the events ``offsets[i] .. offsets[i + 1] - 1``.
        made_up: the values are synthetic; the lengths may be real.

    Cost: of a batch: what ``RaggedColumns`` costs; nothing is kept a sample.
    """

    events: Mapping[str, NDArray[Any]]
    rows: Mapping[str, NDArray[Any]]
    offsets: NDArray[np.int64]
    made_up: bool

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) events of each sample."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """N, the number of samples."""
        return self.offsets.size - 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        """One sample."""
        sample: dict[str, Any] = self.__getitems__([index])[0]
        return sample

    def __getitems__(self, indices: Sequence[int] | NDArray[Any]) -> RaggedColumns:
        """The samples of a batch, as columns."""
        return RaggedColumns.of(self.events, self.rows, self.offsets, indices)


def synthetic(spec: ModelSpec, lengths: ArrayLike, *, seed: int = 0) -> Histories:
    """Make up what a model's samples hold, for sequences of the given lengths.

    Ids follow Zipf's law with exponent 1, the k-th most popular of V is drawn with probability log(1 + 1/k)/log(V + 1),
    and popular ids are scattered over the table: what caches see of an embedding table is much as with real
    items. Every field is drawn by itself, so nothing can be learned. Fields that are no ids hold 0 or 1, half each.

    Args:
        spec: row of the model table.
        lengths: (N,).
        seed: the same seed, spec and lengths give the same samples, on every machine.

    Raises:
        LengthsError: lengths that cannot be used.

    Cost: 8 bytes an event and id field.
    Source: the log-uniform distribution, as TensorFlow's ``log_uniform_candidate_sampler`` has it.
    """
    counted = checked_lengths(lengths)
    offsets = np.zeros(counted.size + 1, dtype=np.int64)
    np.cumsum(counted, out=offsets[1:])
    events, rows = {}, {}
    for number, field in enumerate(spec.fields):
        rng = np.random.default_rng((seed, 3, number))
        if field.per == "event":
            events[field.name] = _drawn(field, int(offsets[-1]), rng)
        else:
            rows[field.name] = _drawn(field, counted.size, rng)
    return Histories(events, rows, offsets, made_up=True)


def _drawn(field: FieldSpec, entries: int, rng: np.random.Generator) -> NDArray[Any]:
    shape = (entries, *field.shape)
    if field.vocabulary is None:
        return rng.integers(0, 2, size=shape).astype(field.dtype)
    many = field.vocabulary
    ranks = np.floor(np.exp(rng.random(shape) * np.log(many + 1))).astype(np.int64) - 1
    ids: NDArray[Any] = rng.permutation(many)[ranks.clip(0, many - 1)].astype(field.dtype, copy=False)
    return ids


def from_fields(spec: ModelSpec, data: Mapping[str, Any]) -> Histories:
    """Real histories: a ``Jagged`` for each field with one entry an event, an array for each field of a fixed size.

    Args:
        spec: row of the model table, which names the fields.
        data: every field of ``spec``; more are ignored.

    Raises:
        ShapeError: a field is missing, is not what the model takes, or has other lengths than the first.
    """
    missing = [field.name for field in spec.fields if field.name not in data]
    if missing:
        raise ShapeError(
            f"model {spec.model} needs the fields {', '.join(f.name for f in spec.fields)}: missing "
            f"{', '.join(missing)}. Give lengths alone to have all of them made up."
        )
    events, rows = {}, {}
    offsets: NDArray[np.int64] | None = None
    for field in spec.fields:
        value = data[field.name]
        if field.per == "event":
            own = _jagged(field, value)
            offsets = own.offsets if offsets is None else offsets
            if not np.array_equal(own.offsets, offsets):
                raise ShapeError(
                    f"the sequences of one sample must be aligned: {field.name} has {own.events} events in {len(own)} "
                    f"rows, {spec.sequences[0]} has {offsets[-1]} in {offsets.size - 1}, or others in some row."
                )
            events[field.name] = np.ascontiguousarray(own.values)  # a gather from others would copy them all first
        else:
            rows[field.name] = np.asarray(value, order="C")
    if offsets is None:
        raise AssertionError(f"model {spec.model} has no field with one entry an event")
    for name, values in (*events.items(), *rows.items()):
        _check_values(next(f for f in spec.fields if f.name == name), values, offsets.size - 1)
    return Histories(events, rows, offsets, made_up=False)


def _jagged(field: FieldSpec, value: Any) -> Jagged:
    if not isinstance(value, Jagged):
        raise ShapeError(f"{field.name} has one entry an event: expected a Jagged, got a {type(value).__name__}.")
    if isinstance(value.values, np.ndarray):
        return value
    return Jagged(value.values.cpu().numpy(), value.offsets.cpu().numpy())


def _check_values(field: FieldSpec, values: NDArray[Any], samples: int) -> None:
    if field.per == "row" and (len(values) != samples or values.shape[1:] != field.shape):
        raise ShapeError(f"{field.name} must be {(samples, *field.shape)}: got shape {values.shape}.")
    if field.vocabulary is not None and values.size:
        least, most = int(values.min()), int(values.max())
        if values.dtype.kind not in "iu" or least < 0 or most >= field.vocabulary:
            raise ShapeError(
                f"{field.name} must be whole numbers within 0 .. {field.vocabulary - 1}: got {values.dtype} within "
                f"{least} .. {most}."
            )


def sampled_lengths(source: LengthHistogram | ArrayLike, sequences: int, seed: int) -> NDArray[np.int64]:
    """(n,) lengths of at most so many sequences: all of them, in random order, or a sample without replacement.

    The longest is always in the sample, so that what is padded to it has the width that all the data would give it.

    Cost: O(n + distinct lengths); the sequences of the histogram are never listed.
    """
    histogram = source if isinstance(source, LengthHistogram) else LengthHistogram.from_lengths(source)
    rng = np.random.default_rng((seed, 4))
    counts = histogram.counts
    if histogram.sequences > sequences:
        longest = np.zeros_like(counts)
        longest[np.flatnonzero(counts)[-1]] = 1
        counts = longest + rng.multivariate_hypergeometric(counts - longest, sequences - 1, method="marginals")
    lengths: NDArray[np.int64] = rng.permutation(np.repeat(histogram.values, counts).astype(np.int64))
    return lengths
