"""The parts of a tuned configuration as they lie in the JSON, and the way to and from the objects of the lab."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from labkit.batching.policy import BatchOrder, BatchPolicy, Overflow, Oversize, PadTo
from labkit.batching.strategies import Strategy
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Figure, Origin


class Stored(BaseModel):
    """Base of every part: types are never converted, unknown fields refused, NaN and infinity too."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class StoredPolicy(Stored):
    """Every field of the batch policy; those that its strategy does not use are stored and not looked at."""

    strategy: Annotated[Strategy, Field(strict=False)]
    """Key of the strategy."""
    rows: int
    """Sequences a batch, in the strategies with fixed rows."""
    bucket_edges: tuple[int, ...] | None
    """Strictly increasing integers >= 1, upper-inclusive."""
    bucket_widths: tuple[int, ...] | None
    """Padded width of each bucket; null: the edges."""
    token_budget: int
    """Hard limit on a batch: rows * width, or the sum of lengths in strategies without padding."""
    max_rows: int
    """Most rows of a batch without padding."""
    max_length: int | None
    """Truncation cap, the most recent events are kept; null: no cap (pad_recent: ceil of the 99th percentile)."""
    overflow: Annotated[Overflow, Field(strict=False)]
    """What happens to lengths above the last edge, or the capacity of a pack."""
    oversize: Annotated[Oversize, Field(strict=False)]
    """What happens to a width above the token budget."""
    pad_to: Annotated[PadTo, Field(strict=False)]
    """Width of a batch: that of its bucket, or its own longest row."""
    static_shapes: bool | None
    """Every batch of a bucket has the same rows; null: as the strategy has it by default."""
    row_multiple: int
    """Rows of a bucket are rounded down to it when at least one multiple fits."""
    length_multiple: int
    """Padded widths are rounded up to it."""
    capacity: int | None = None
    """Slots of a pack; null: the longest length after the cap. Absent in files from before packing."""
    max_sequences_per_pack: int | None = None
    """Most sequences that share a pack; null: as many as fit. Absent in files from before packing."""
    batch_order: Annotated[BatchOrder, Field(strict=False)]
    """Order of the batches of an epoch."""
    shuffle: bool
    """False keeps the given order."""
    drop_last: bool
    """Leave out the last, partial batch of each bucket."""

    @classmethod
    def of(cls, policy: BatchPolicy) -> Self:
        """Store a policy; NumPy's numbers become plain ones."""
        return cls(**{f.name: plain(getattr(policy, f.name)) for f in fields(policy)})

    @model_validator(mode="after")
    def _is_a_policy(self) -> Self:
        self.restored()
        return self

    def restored(self) -> BatchPolicy:
        """The policy, validated anew."""
        return BatchPolicy(**{name: getattr(self, name) for name in type(self).model_fields})


class StoredHistogram(Stored):
    """The lengths that the policy was tuned on: how many sequences have which length."""

    values: tuple[int, ...]
    """Distinct lengths, strictly increasing, >= 0."""
    counts: tuple[int, ...]
    """How many sequences have that length, each >= 1."""

    @classmethod
    def of(cls, histogram: LengthHistogram) -> Self:
        """Store a histogram."""
        return cls(values=tuple(histogram.values.tolist()), counts=tuple(histogram.counts.tolist()))

    @model_validator(mode="after")
    def _is_a_histogram(self) -> Self:
        self.restored()
        return self

    def restored(self) -> LengthHistogram:
        """The histogram, validated anew."""
        return LengthHistogram(np.array(self.values), np.array(self.counts))


class StoredFigure(Stored):
    """One number with its unit and origin; a number that does not exist is null with a reason."""

    value: int | float | None
    """In SI base units."""
    unit: str
    """``1`` for ratios and counts."""
    origin: Annotated[Origin, Field(strict=False)] | None
    """How the number came to be."""
    reason: str | None
    """Why there is none, or what kind of model made it."""

    @classmethod
    def of(cls, figure: Figure) -> Self:
        """Store a figure."""
        return cls(value=plain(figure.value), unit=figure.unit, origin=figure.origin, reason=figure.reason)

    @model_validator(mode="after")
    def _is_a_figure(self) -> Self:
        self.restored()
        return self

    def restored(self) -> Figure:
        """The figure, validated anew."""
        return Figure(self.value, self.unit, self.origin, self.reason)


def plain(value: Any) -> Any:
    """The value without NumPy: its scalars become Python's, its arrays and all lists become tuples."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    return value
