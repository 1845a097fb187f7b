"""Causal self-attention of histories in every layout: nobody sees later events, padding, or other users."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from labkit.layouts.history_order import Histories
from labkit.layouts.jagged_batch import JaggedBatch, longest_row
from labkit.layouts.masks import Side, positions
from labkit.layouts.packed import PackedBatch, block_mask
from labkit.layouts.segments import row_ids
from labkit.models.fused import attention


class CausalAttention(NamedTuple):
    """Where the events of a batch are, and who may attend to whom; made once a batch, used by every block.

    - Padded on the right: causal alone. What a real event must not see, padding included, comes later. There is no mask
      in memory.
    - Padded on the left, and packed rows: a boolean (R, L, L), same history and not later. Padding is a history of its
      own, so that no query is without keys, which some kernels answer with NaN.
    - Jagged: the stream of events is cut into windows as wide as the longest row. No history reaches further back than
      the window before, so that an event attends to its own window and that one, masked as packed rows are:

          a a a b | b b c d     longest 4: the two windows attend to  . . . . a a a b  and  a a a b b b c d

      (Torch's nested tensors would cut it themselves, but their causal attention exists on CUDA alone, and not for
      empty rows: see ``labkit.layouts.nested``.)

    Attributes:
        positions: of each event in its history, from 0; None: the number of its slot.
        mask: (R, 1, L, L) bool, of windows (n, 1, W, 2 * W), True = attend; None: causal.
        shape: (R, L), of windows (n, W).
        windows: the batch is cut into windows.
    """

    positions: Tensor | None
    mask: Tensor | None
    shape: tuple[int, int]
    windows: bool = False

    @classmethod
    def of(cls, batch: Histories, events: int, side: Side = Side.RIGHT) -> CausalAttention:
        """Look at a batch.

        Args:
            batch: of the layouts above.
            events: T of a jagged batch.
            side: of the padding of a rectangle.

        Cost: O(slots) and the mask; no host synchronization.
        """
        if isinstance(batch, PackedBatch):
            # + 1: padding becomes a segment like any other
            mask = block_mask(batch.segment_ids + 1, causal=True)[:, None]
            return cls(batch.positions, mask, _shape(batch.segment_ids))
        if isinstance(batch, JaggedBatch):
            width = longest_row(batch)
            ids = row_ids(batch.offsets, events)
            mask = window_mask(ids, width, causal=True)[:, None]
            steps = torch.arange(events, device=ids.device) - batch.offsets[ids]
            return cls(steps, mask, (mask.shape[0], width), windows=True)
        if side is Side.RIGHT:
            return cls(None, None, _shape(batch.valid))
        mask = block_mask(batch.valid + 1, causal=True)[:, None]
        return cls(positions(batch.valid), mask, _shape(batch.valid))

    def __call__(self, projected: Tensor, heads: int) -> Tensor:
        """Attend.

        Args:
            projected: (R, L, 3 * D), or (T, 3 * D) of a jagged batch: queries, keys and values side by side.
            heads: that divide D.

        Returns:
            (R, L, D) or (T, D); what padding gets is finite and means nothing.

        Cost: 4 * R * L**2 * D operations; of a jagged batch 8 * T * W * D, T rounded up to windows.
        """
        if self.windows:
            parts = self._in_windows(projected, heads)
        else:
            # taken apart before they are transposed, so that the backward puts them together in one copy
            parts = projected.view(*self.shape, 3, heads, -1).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        found = attention(query, key, value, self.mask).transpose(1, 2).flatten(2)
        return found.flatten(0, 1)[: projected.shape[0]] if self.windows else found

    def _in_windows(self, projected: Tensor, heads: int) -> tuple[Tensor, ...]:
        """Queries (n, W, heads, d); keys, values (n, 2 * W, heads, d), views of a stream that begins a window early."""
        count, width = self.shape
        rest, depth = count * width - projected.shape[0], projected.shape[1] // 3
        query, others = torch.split(projected, [depth, 2 * depth], dim=1)
        query = pad(query, (0, 0, 0, rest)).view(count, width, heads, -1)
        others = pad(others, (0, 0, width, rest)).unfold(0, 2 * width, width).transpose(1, 2)
        return query, *others.view(count, 2 * width, 2, heads, -1).unbind(2)


def window_mask(ids: Tensor, width: int, *, causal: bool) -> Tensor:
    """Who may attend to whom among the events of a stream, cut into windows of ``width``, at least the longest row.

        ids 0 0 1, width 2 -> [[. . 1 .] [. . 1 1]], [[. . 1 .] [. . . 1]]     (columns: window before, own window)

    Args:
        ids: (T,) int64, the row of each event, rows in order.
        width: W.
        causal: leave out later events.

    Returns:
        (n, W, 2 * W) bool, True = attend, n = T / W rounded up, at least 1. The fill of the last window sees itself.

    Cost: 2 * n * W**2 bytes.
    """
    count = max(1, -(-ids.shape[0] // width))
    own = pad(ids, (width, count * width - ids.shape[0]), value=-1)
    mask = own[width:].view(count, width, 1) == own.unfold(0, 2 * width, width)[:, None]
    return mask.tril_(width) if causal else mask


def _shape(slots: Tensor) -> tuple[int, int]:
    rows, width = slots.shape
    return rows, width
