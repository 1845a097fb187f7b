"""example_batch: a batch of given lengths for a model, in any layout, with the same content in each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from labkit.batching.fields import choice
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout, Strategy
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.batch import Batch
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.moving import to_device
from labkit.layouts.packed import PackedBatch
from labkit.layouts.packed_rnn import pack_jagged
from labkit.layouts.padded import PaddedBatch, pad_rows, valid_slots
from labkit.layouts.segmented import segmented
from labkit.layouts.sparse import sparse_batch
from labkit.models.registry import FieldSpec, ModelSpec

_Fields = dict[str, Tensor]


class Packs(NamedTuple):
    """How rows share packs.

    Attributes:
        order: (S,) int64, the row that each piece is; ``out[packs.inverse]`` brings outputs of pieces back to rows.
        inverse: (S,) int64, the piece that each row is.
        offsets: (R + 1,) int64, the pieces of each pack.
    """

    order: NDArray[np.int64]
    inverse: NDArray[np.int64]
    offsets: NDArray[np.int64]


def packs_of(lengths: ArrayLike, capacity: int | None = None) -> Packs:
    """Pack (B,) lengths, B >= 1, as ``example_batch`` does: best-fit decreasing into packs of ``capacity`` events.

    Args:
        lengths: (B,) whole numbers.
        capacity: most events of a pack; None: the longest, at least 1.

    Raises:
        PolicyError: a length above the capacity.
    """
    own = np.asarray(lengths, dtype=np.int64)
    most = max(1, int(own.max())) if capacity is None else capacity
    plan = plan_epoch(own, BatchPolicy(Strategy.PACKED, rows=max(1, own.size), capacity=most, shuffle=False))
    offsets = plan.pack_offsets
    if offsets is None:
        raise AssertionError("a plan of packs has offsets of packs")
    return Packs(plan.order, np.argsort(plan.order), offsets)


def example_batch(
    spec: ModelSpec,
    layout: Layout | str,
    lengths: ArrayLike,
    *,
    rows: int | None = None,
    width: int | None = None,
    capacity: int | None = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> Batch:
    """Make a batch of random samples with the given lengths.

    The same seed and lengths give the same samples in every layout: row b has the same ids and the same labels. Packed,
    row b is piece ``packs_of(lengths, capacity).inverse[b]``.

    Args:
        spec: of the model; says which fields.
        layout: of the batch.
        lengths: (B,) events of each row, B >= 1, 0 among them if you like.
        rows: R >= B, the R - B ghost rows come last; None: B. Not for packed rows.
        width: L of the padded layout, >= the longest; None: the longest, at least 1.
        capacity: slots of a pack; None: the longest, at least 1.
        device: where it goes in the end; ``meta`` gives shapes alone.
        seed: of the content.

    Raises:
        ShapeError: no row, a length below 0 or above the width or capacity, fewer rows than lengths.
        PolicyError: a layout that the model does not take.
    """
    layout = choice("layout", layout, Layout)
    if layout not in spec.takes:
        raise PolicyError(f"model {spec.model} does not take the {layout} layout: use {' or '.join(spec.takes)}.")
    own = _checked(lengths)
    count = own.size if rows is None else rows
    if rows is not None and layout is Layout.PACKED_ROWS:
        raise PolicyError("packed rows have no ghost rows: leave rows out.")
    if count < own.size:
        raise ShapeError(f"rows must be at least the number of lengths: expected >= {own.size}, got {count}.")
    values, offsets = _sample(spec, own, count, seed), np.zeros(count + 1, np.int64)
    np.cumsum(np.pad(own, (0, count - own.size)), out=offsets[1:])
    jagged = JaggedBatch(values, torch.from_numpy(offsets), own.size, int(own.max()))
    match layout:
        case Layout.JAGGED:
            batch: Batch = jagged
        case Layout.SEGMENTED:
            batch = segmented(jagged)
        case Layout.PADDED:
            batch = _padded(jagged, values, spec, width)
        case Layout.PACKED_ROWS:
            batch = _packed(values, own, spec, capacity)
        case Layout.PACKED_SEQUENCE:
            fixed = [field.name for field in spec.fields if field.per == "row"]
            batch = pack_jagged(values, jagged.offsets.diff(), rows=own.size, fixed=fixed)
        case Layout.SPARSE:
            batch = sparse_batch(jagged, spec.sequences)
    return to_device(batch, device)


def _checked(lengths: ArrayLike) -> NDArray[np.int64]:
    own = np.asarray(lengths)
    if own.ndim != 1 or own.size == 0 or own.dtype.kind not in "iu" or int(own.min()) < 0:
        raise ShapeError(f"lengths must be (B,) whole numbers >= 0, B >= 1: got shape {own.shape}, {own.dtype}.")
    return own.astype(np.int64)


def _sample(spec: ModelSpec, lengths: NDArray[np.int64], rows: int, seed: int) -> _Fields:
    """Fields of B samples: events end to end, the rest (R, ...) with zeros for ghost rows."""
    random = np.random.default_rng(seed)
    values: _Fields = {}
    for field in spec.fields:
        count = int(lengths.sum()) if field.per == "event" else lengths.size
        drawn = _drawn(field, (count, *field.shape), random)
        if field.per == "row":
            drawn = np.concatenate([drawn, np.zeros((rows - count, *field.shape), drawn.dtype)])
        values[field.name] = torch.from_numpy(drawn)
    return values


def _drawn(field: FieldSpec, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    if field.vocabulary is None:  # a label or a feature: 0 or 1, half each
        return random.integers(2, size=shape).astype(field.dtype)
    return random.integers(field.vocabulary, size=shape)


def _padded(jagged: JaggedBatch, values: _Fields, spec: ModelSpec, width: int | None) -> PaddedBatch:
    lengths = jagged.offsets.diff()
    longest = int(lengths.max())
    width = max(1, longest) if width is None else width
    if longest > width:
        raise ShapeError(f"lengths must be at most the width: expected <= {width}, got {longest}. Raise width.")
    shape = (lengths.shape[0], width)
    padded = {name: pad_rows(values[name], jagged.offsets, shape) for name in spec.sequences}
    return PaddedBatch(values | padded, lengths, valid_slots(lengths, width), jagged.rows)


def _packed(values: _Fields, lengths: NDArray[np.int64], spec: ModelSpec, capacity: int | None) -> PackedBatch:
    width = max(1, int(lengths.max())) if capacity is None else capacity
    if int(lengths.max()) > width:
        raise ShapeError(f"lengths must be at most the capacity: expected <= {width}, got {lengths.max()}.")
    packs = packs_of(lengths, width)
    own, rows = lengths[packs.order], packs.offsets.size - 1
    starts = np.cumsum(lengths) - lengths
    ends = np.cumsum(own)
    inside = np.arange(ends[-1]) - np.repeat(ends - own, own)  # position of an event in its piece
    pack = np.repeat(np.arange(rows), np.diff(packs.offsets))  # of each piece
    before = (ends - own) - (ends - own)[packs.offsets[:-1]][pack]  # events of its pack that come before it
    slots = np.repeat(pack * width + before, own) + inside
    source = np.repeat(starts[packs.order], own) + inside
    segment = np.repeat(np.arange(own.size) - packs.offsets[:-1][pack] + 1, own)

    def laid_out(events: Tensor) -> Tensor:
        cells = events.new_zeros((rows * width, *events.shape[1:]))
        cells[torch.from_numpy(slots)] = events
        return cells.view(rows, width, *events.shape[1:])

    order = torch.from_numpy(packs.order.copy())
    fields = {
        name: laid_out(value[torch.from_numpy(source)]) if name in spec.sequences else value[order]
        for name, value in values.items()
    }
    places = (laid_out(torch.from_numpy(inside)), laid_out(torch.from_numpy(segment)))
    return PackedBatch(fields, *places, torch.from_numpy(own), torch.from_numpy(packs.offsets.copy()), rows)
