"""Causal self-attention of histories in every layout: nobody sees later events, padding, or other users."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

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
    - Jagged: attention, not the layers around it, runs on a rectangle as wide as the longest row, causal alone. Torch's
      nested tensors would need none, but their causal attention exists on CUDA alone, and not for empty rows: see
      ``labkit.layouts.nested``.

    Attributes:
        positions: of each event in its history, from 0; None: the number of its slot.
        mask: (R, 1, L, L) bool, True = attend; None: causal.
        slots: (T,) of a jagged batch, where its events lie in the rectangle.
        shape: (R, L) of the rectangle.
    """

    positions: Tensor | None
    mask: Tensor | None
    slots: Tensor | None
    shape: tuple[int, int]

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
            return cls(batch.positions, mask, None, _shape(batch.segment_ids))
        if isinstance(batch, JaggedBatch):
            ids, width = row_ids(batch.offsets, events), longest_row(batch)
            steps = torch.arange(events, device=ids.device) - batch.offsets[ids]
            return cls(steps, None, ids * width + steps, (batch.offsets.shape[0] - 1, width))
        if side is Side.RIGHT:
            return cls(None, None, None, _shape(batch.valid))
        mask = block_mask(batch.valid + 1, causal=True)[:, None]
        return cls(positions(batch.valid), mask, None, _shape(batch.valid))

    def __call__(self, projected: Tensor, heads: int) -> Tensor:
        """Attend.

        Args:
            projected: (R, L, 3 * D), or (T, 3 * D) of a jagged batch: queries, keys and values side by side.
            heads: that divide D.

        Returns:
            (R, L, D) or (T, D); what padding gets is finite and means nothing.

        Cost: 4 * R * L**2 * D operations; of a jagged batch also two copies of the rectangle.
        """
        flat = projected
        if self.slots is not None:
            rows, width = self.shape
            flat = projected.new_zeros(rows * width, projected.shape[-1]).index_copy(0, self.slots, projected)
        # taken apart before they are transposed, so that the backward puts them together in one copy
        parts = flat.view(*self.shape, 3, heads, -1).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        found = attention(query, key, value, self.mask).transpose(1, 2).flatten(2)
        return found if self.slots is None else found.flatten(0, 1).index_select(0, self.slots)


def _shape(slots: Tensor) -> tuple[int, int]:
    rows, width = slots.shape
    return rows, width
