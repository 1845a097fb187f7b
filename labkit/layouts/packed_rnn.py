"""The packed sequence of recurrent networks: events step by step, longest history first, the order restored inside."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from labkit.errors import ShapeError


class PackedSequenceBatch(NamedTuple):
    """A batch as torch's PackedSequence: all first events, then all second ones, .. of the rows that still have one.

        row 0  a b        lengths 2 0 3       values           c a d b e
        row 1  (empty)    filled_rows 0 2     batch_sizes      2 2 1
        row 2  c d e      rows 3              sorted_indices   1 0          (of the filled rows)
                                              places           1 3 0 2 4    (a is values[1], b values[3], ..)

    Nobody outside sees the order: ``packed`` gives what a recurrent network of torch takes, ``unpack`` and ``last``
    bring back what it gives in the order of the rows, with zeros for empty ones.

    Attributes:
        values: (T,) or (T, D), step by step; for samples with named fields a dict of them, fixed-size fields being
            (R, ...) in the order of the rows.
        batch_sizes: (steps,) int64, rows that have a step; **always on the CPU**, where torch reads it.
        sorted_indices: (n,) int64, the filled rows by length, longest first, numbered 0 .. n - 1.
        unsorted_indices: (n,) int64, its inverse.
        filled_rows: (n,) int64, ascending, the rows with at least one event.
        places: (T,) int64, where an event, counted row by row, lies in ``values``.
        lengths: (R,) int64, events kept of each row; 0 for ghost rows.
        rows: real rows; the R - rows ghost rows come last.
    """

    values: Tensor | dict[str, Tensor]
    batch_sizes: Tensor
    sorted_indices: Tensor
    unsorted_indices: Tensor
    filled_rows: Tensor
    places: Tensor
    lengths: Tensor
    rows: int

    @property
    def events(self) -> int:
        """T, events of all rows; known on the host."""
        return self.places.shape[0]

    def packed(self, data: Tensor) -> PackedSequence:
        """What a recurrent network of torch takes, from (T, ...) data that lie as ``values`` do.

        Raises:
            ShapeError: not one entry an event; no event at all, which torch's networks refuse.

        Cost: nothing is copied; no host synchronization.
        """
        self._check(data, "data")
        if not self.events:
            raise ShapeError("a batch without any event cannot be packed: all rows are empty. Skip the network.")
        return PackedSequence(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def unpack(self, output: Tensor | PackedSequence) -> Tensor:
        """(T, ...) outputs of a recurrent network, row after row as in a jagged batch of the same ``lengths``.

        Raises:
            ShapeError: not one entry an event.

        Cost: one gather; no host synchronization.
        """
        data = output.data if isinstance(output, PackedSequence) else output
        self._check(data, "output")
        return data.index_select(0, self.places)

    def last(self, state: Tensor) -> Tensor:
        """(R, ...) states after the last event, zeros for empty rows, from the (n, ...) last states of a network.

        Args:
            state: ``h_n[-1]`` of ``nn.GRU(...)(batch.packed(data))``: the filled rows in their own order.

        Raises:
            ShapeError: not one state a filled row.

        Cost: one copy; no host synchronization.
        """
        filled = self.filled_rows.shape[0]
        if state.shape[0] != filled:
            raise ShapeError(
                f"state must have one entry a row with events: expected {filled}, got {tuple(state.shape)} "
                f"(R={self.lengths.shape[0]}). Give h_n[-1] of the network."
            )
        empty = state.new_zeros((self.lengths.shape[0], *state.shape[1:]))
        return empty.index_copy(0, self.filled_rows, state)

    def _check(self, data: Tensor, name: str) -> None:
        if data.shape[:1] != (self.events,):
            raise ShapeError(
                f"{name} must have one entry an event: expected ({self.events}, ...), got {tuple(data.shape)}. "
                "Give what was computed from values of this batch."
            )


def pack_jagged(
    values: Tensor | dict[str, Tensor], lengths: Tensor, *, rows: int | None = None, fixed: Collection[str] = ()
) -> PackedSequenceBatch:
    """Pack rows that lie end to end.

    Args:
        values: (T,) or (T, D), or a dict of them.
        lengths: (R,) whole numbers >= 0 that add up to T; they are moved to the CPU, once.
        rows: real rows, the others are ghost rows; None: all.
        fixed: names of fields that are (R, ...) and stay as they are.

    Raises:
        ShapeError: lengths that are not whole, negative, or do not add up to T.

    Cost: O(T) on the host; one gather a field on its device. No host synchronization where the lengths are on the CPU.
    """
    host = _host_lengths(lengths)
    for name, field in _sequences(values, fixed).items():
        if len(field) != host.sum():
            raise ShapeError(
                f"lengths must add up to T: expected {len(field)}, got {host.sum()} "
                f"({name} {tuple(field.shape)}, R={host.size}). Count the events of each row again."
            )
    steps = _Steps.of(host)
    order = np.empty_like(steps.places)
    order[steps.places] = np.arange(order.size)
    return _batch(values, lengths, host, steps, order, rows, fixed)


def pack_padded(
    values: Tensor | dict[str, Tensor], lengths: Tensor, *, rows: int | None = None, fixed: Collection[str] = ()
) -> PackedSequenceBatch:
    """Pack the rows of a rectangle that is padded on the right: ``pack_padded_sequence`` that takes empty rows.

    Args:
        values: (R, L) or (R, L, D), or a dict of them.
        lengths: (R,) whole numbers from 0 to L; they are moved to the CPU, once.
        rows: real rows, the others are ghost rows; None: all.
        fixed: names of fields that are (R, ...) and stay as they are.

    Raises:
        ShapeError: lengths that are not whole, negative, above L, or not one a row.

    Cost: O(T) on the host; one gather a field on its device. No host synchronization where the lengths are on the CPU.
    """
    host = _host_lengths(lengths)
    sequences = _sequences(values, fixed)
    for name, field in sequences.items():
        _check_rectangle(name, field, host)
    steps = _Steps.of(host)
    width = next(iter(sequences.values())).shape[1]
    order = np.empty_like(steps.places)
    order[steps.places] = steps.row * width + steps.step
    flat = {name: field.flatten(0, 1) for name, field in sequences.items()}
    given: Tensor | dict[str, Tensor] = values | flat if isinstance(values, dict) else next(iter(flat.values()))
    return _batch(given, lengths, host, steps, order, rows, fixed)


class _Steps(NamedTuple):
    """Lengths of a batch, step by step; row and step are those of each event, counted row by row."""

    batch_sizes: NDArray[np.int64]
    sorted_indices: NDArray[np.int64]
    unsorted_indices: NDArray[np.int64]
    filled_rows: NDArray[np.int64]
    places: NDArray[np.int64]
    row: NDArray[np.int64]
    step: NDArray[np.int64]

    @classmethod
    def of(cls, lengths: NDArray[np.int64]) -> _Steps:
        filled = np.flatnonzero(lengths)
        own = lengths[filled]
        by_length = np.argsort(-own, kind="stable")
        rank = np.empty_like(by_length)
        rank[by_length] = np.arange(own.size)
        # rows with more than t events: all but those with t or fewer; every filled row has more than 0
        sizes = own.size - np.cumsum(np.bincount(own))[: own.max(initial=0)]
        row = np.repeat(np.arange(own.size), own)
        step = np.arange(row.size) - np.repeat(np.cumsum(own) - own, own)
        places = (np.cumsum(sizes) - sizes)[step] + rank[row]
        return cls(sizes, by_length, rank, filled, places, filled[row], step)


def _batch(
    values: Tensor | dict[str, Tensor],
    lengths: Tensor,
    host: NDArray[np.int64],
    steps: _Steps,
    order: NDArray[np.int64],
    rows: int | None,
    fixed: Collection[str],
) -> PackedSequenceBatch:
    """Gather each sequence by ``order``, and put the indices where the values are."""
    sequences = _sequences(values, fixed)
    device = next(iter(sequences.values())).device

    def there(array: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(array).to(device, non_blocking=True)

    index = there(order)
    laid = {name: field.index_select(0, index) for name, field in sequences.items()}
    return PackedSequenceBatch(
        values | laid if isinstance(values, dict) else next(iter(laid.values())),
        torch.from_numpy(steps.batch_sizes),
        there(steps.sorted_indices),
        there(steps.unsorted_indices),
        there(steps.filled_rows),
        there(steps.places),
        lengths.to(device, torch.int64, non_blocking=True),
        host.size if rows is None else rows,
    )


def _sequences(values: Tensor | dict[str, Tensor], fixed: Collection[str]) -> dict[str, Tensor]:
    """The fields with one entry an event."""
    if isinstance(values, Tensor):
        return {"values": values}
    found = {name: field for name, field in values.items() if name not in fixed}
    if not found:
        raise ShapeError(f"no field is a sequence: got {', '.join(values) or 'none'}, all of them in fixed.")
    return found


def _host_lengths(lengths: Tensor) -> NDArray[np.int64]:
    """Lengths on the CPU as int64, checked: torch wants them there, and takes negative ones."""
    if lengths.ndim != 1 or lengths.is_floating_point() or lengths.dtype is torch.bool:
        raise ShapeError(f"lengths must be (R,) whole numbers: got {tuple(lengths.shape)} of {lengths.dtype}.")
    host: NDArray[np.int64] = lengths.detach().cpu().long().numpy()
    if host.min(initial=0) < 0:
        first = int(np.argmax(host < 0))
        raise ShapeError(f"lengths must be 0 or more: got lengths[{first}] == {host[first]}.")
    return host


def _check_rectangle(name: str, field: Tensor, lengths: NDArray[np.int64]) -> None:
    if field.ndim < 2 or len(field) != lengths.size:
        raise ShapeError(
            f"{name} must be (R, L) or (R, L, D) with one length a row: got {tuple(field.shape)} and "
            f"{lengths.size} lengths."
        )
    width = field.shape[1]
    if lengths.max(initial=0) > width:
        first = int(np.argmax(lengths > width))
        raise ShapeError(
            f"lengths must be at most the width: expected <= {width}, got lengths[{first}] == {lengths[first]} "
            f"({name} {tuple(field.shape)}). Cut them to the width, or pad wider."
        )
