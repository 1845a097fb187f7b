"""collate: a batch of samples -> the tensors that the policy planned, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from labkit.batching.fields import choice
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout
from labkit.errors import PolicyError
from labkit.gpu.launch_config import LaunchConfig
from labkit.layouts.batch_shapes import BatchShape, BatchShapes
from labkit.layouts.columns import read_batch
from labkit.layouts.features import Samples
from labkit.layouts.jagged_batch import JaggedBatch as JaggedBatch
from labkit.layouts.packed_collate import PackedCollate
from labkit.layouts.packed_rnn import PackedSequenceBatch, pack_jagged
from labkit.layouts.padded import PaddedBatch, pad_feature, valid_slots
from labkit.layouts.segmented import SegmentedBatch, segmented
from labkit.layouts.sparse import SparseBatch, sparse_batch
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, eq=False, slots=True)
class Collate:
    """The ``collate_fn`` of a policy; made by ``collate``. It can be pickled, so workers may be spawned.

    Attributes:
        shapes: what the policy says about the shape of its batches.
        layout: padded, jagged, segmented, packed sequence or sparse.
        padding_value: written to padding slots.
        sequences: fields with one entry an event; None: every field with at least one dimension.
        launch: thresholds of the segmented layout.
    """

    shapes: BatchShapes
    layout: Layout
    padding_value: float
    sequences: tuple[str, ...] | None
    launch: LaunchConfig = field(default_factory=LaunchConfig)

    @property
    def policy(self) -> BatchPolicy:
        """The policy whose batches it takes."""
        return self.shapes.policy

    def __call__(
        self, samples: Sequence[Any]
    ) -> PaddedBatch | JaggedBatch | SegmentedBatch | PackedSequenceBatch | SparseBatch:
        """Turn the samples of one batch into tensors; see ``collate``."""
        read, shape = self.planned(samples)
        lengths = np.zeros(shape.rows, dtype=np.int64)
        lengths[: len(samples)] = shape.kept
        if self.layout is Layout.PADDED:
            kept = torch.from_numpy(lengths)
            return PaddedBatch(self._values(read, shape), kept, valid_slots(kept, shape.width), len(samples))
        if self.layout is Layout.PACKED_SEQUENCE:
            fixed = tuple(read.fixed)
            return pack_jagged(self._values(read, shape), torch.from_numpy(lengths), rows=len(samples), fixed=fixed)
        offsets = torch.zeros(shape.rows + 1, dtype=torch.int64)
        np.cumsum(lengths, out=offsets.numpy()[1:])
        jagged = JaggedBatch(self._values(read, shape), offsets, len(samples), int(lengths.max()))
        if self.layout is Layout.SEGMENTED:
            return segmented(jagged, self.launch)
        return sparse_batch(jagged, tuple(read.sequences)) if self.layout is Layout.SPARSE else jagged

    def planned(self, samples: Sequence[Any]) -> tuple[Samples, BatchShape]:
        """Read the samples of one batch, and find the shape that the policy planned for them.

        Raises:
            PolicyError: a batch that the policy does not make.
            ShapeError: samples that do not fit together.
        """
        if not len(samples):
            raise PolicyError("batch of 0 rows: no policy makes one. Use BucketBatchSampler with the same policy.")
        read = read_batch(samples, self.sequences)
        return read, self.shapes.of_batch(read.lengths)

    def _values(self, read: Samples, shape: BatchShape) -> Tensor | dict[str, Tensor]:
        if self.layout is not Layout.PADDED:
            return end_to_end(read, shape)
        spans, rectangle, fill = read.recent(shape.kept, shape.width), (shape.rows, shape.width), self.padding_value
        padded = {
            name: pad_feature(feature, spans, rectangle, padding_value=fill, name=name)
            for name, feature in read.sequences.items()
        }
        return read.with_fixed(padded, shape.rows)


def end_to_end(read: Samples, shape: BatchShape) -> Tensor | dict[str, Tensor]:
    """(T,) or (T, D) of each sequence: the most recent events of each row; and the fields of a fixed size.

    Cost: one allocation and one copy a field.
    """
    spans = read.recent(shape.kept)
    return read.with_fixed({name: each.end_to_end(spans) for name, each in read.sequences.items()}, shape.rows)


def collate(
    policy: BatchPolicy,
    layout: Layout | str | None = None,
    *,
    histogram: LengthHistogram | ArrayLike | None = None,
    padding_value: float = 0,
    sequences: Sequence[str] | None = None,
    launch: LaunchConfig | None = None,
) -> Collate | PackedCollate:
    """Make the ``collate_fn`` that gives each batch of a policy the shape that was planned for it.

        DataLoader(data, batch_sampler=BucketBatchSampler(lengths, policy), collate_fn=collate(policy))

        max_length=3, one bucket of width 4, 3 rows:    b c d .    valid 1 1 1 0    lengths 3
        samples  a b c d | e f                          e f . .          1 1 0 0            2
                                                        . . . .          0 0 0 0            0    (a ghost row)

    A sample is the history of one user, oldest event first: (T,) or (T, D), an array, a CPU tensor or a list. Or it is
    a mapping of field names: *sequences*, with one entry an event and the same T, are cut together; fields of a fixed
    size (labels, profiles) are stacked, with zeros for ghost rows. Arrays and tensors keep their dtype; Python ints
    become int64, floats float32. T counts entries: an item id equal to ``padding_value`` is an event like any other.

    Args:
        policy: the one that the batch sampler runs.
        layout: ``padded``, ``jagged``, ``segmented``, ``packed_rows``, ``packed_sequence`` or ``sparse``; None: that of
            the strategy.
        histogram: of the data set, or its (N,) lengths. Needed where shapes depend on it: ``pad_max``, ``pad_recent``
            without ``max_length``, ``packed`` without ``capacity``, static shapes without ``drop_last``. Given, the
            policy is checked against it now.
        padding_value: written to padding slots.
        sequences: names of the fields with one entry an event; None: every field with at least one dimension.
        launch: thresholds of the segmented layout; None: those that suit the histogram, or else the defaults.

    Returns:
        A callable: samples -> ``PaddedBatch``, ``JaggedBatch``, ``SegmentedBatch``, ``PackedSequenceBatch`` or
        ``SparseBatch``; of ``packed``, whose samples come from a ``PackedDataset``: -> ``PackedBatch``.
        ``pad_on_device`` makes of it one that leaves the padding to the device.

    Raises:
        PolicyError: a layout that the strategy cannot have, a missing histogram, a policy that does not fit it; when
            called: a batch that the policy does not make.
        ShapeError: when called: samples that do not fit together.

    Cost: of a call: one allocation a field, and one slice copy a row and field; of samples that come as
        ``RaggedColumns``, as a ``RaggedDataset`` gives them, one gather a field and nothing a row.
    """
    chosen = _layout(policy, layout)
    if histogram is not None and not isinstance(histogram, LengthHistogram):
        histogram = LengthHistogram.from_lengths(histogram)
    names = (sequences,) if isinstance(sequences, str) else None if sequences is None else tuple(sequences)
    if chosen is Layout.PACKED_ROWS:
        return PackedCollate.of_policy(policy, histogram, _number(padding_value), names)
    shapes, number = BatchShapes.of_policy(policy, histogram), _number(padding_value)
    if launch is None and chosen is Layout.SEGMENTED and histogram is not None and histogram.events:
        launch = LaunchConfig.for_histogram(histogram, _WIDTH, events=min(policy.token_budget, histogram.events))
    return Collate(shapes, chosen, number, names, launch or LaunchConfig())


def _layout(policy: BatchPolicy, layout: Layout | str | None) -> Layout:
    """The layout asked for, by default that of the strategy, if its batches can have it."""
    own = policy.spec.layout
    possible = _POSSIBLE[own]
    chosen = own if layout is None else choice("layout", layout, Layout)
    if chosen in possible:
        return chosen
    names = " or ".join(f"layout='{name}'" for name in possible)
    why = ""
    if chosen is Layout.PADDED:
        filled = "packs" if own is Layout.PACKED_ROWS else "real events"
        why = f": its batches are filled by {filled}, so that no width is planned"
        if own is Layout.PACKED_SEQUENCE:
            why = ": it pads nothing"
    raise PolicyError(f"strategy {policy.strategy} has no {chosen} layout{why}. Use {names}, or another strategy.")


#: Width of an event for which thresholds are chosen: a collate sees ids, not the model's D, and from 32 to 128 the
#: thresholds differ by a power of two at most.
_WIDTH = 64

#: The layouts that the batches of a strategy can have, by its own layout.
_POSSIBLE = {
    Layout.PADDED: (Layout.PADDED, Layout.JAGGED),
    Layout.JAGGED: (Layout.JAGGED, Layout.SEGMENTED),
    Layout.SEGMENTED: (Layout.SEGMENTED, Layout.JAGGED),
    Layout.PACKED_ROWS: (Layout.PACKED_ROWS,),
    Layout.PACKED_SEQUENCE: (Layout.PACKED_SEQUENCE, Layout.JAGGED),
    Layout.SPARSE: (Layout.SPARSE, Layout.JAGGED),
}


def _number(value: Any) -> float:
    if not isinstance(value, int | float | np.integer | np.floating):
        raise PolicyError(f"padding_value must be a number: got {value!r} ({type(value).__name__}).")
    return value  # type: ignore[return-value]
