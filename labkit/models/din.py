"""DIN: a candidate item looks at the history of a user, and what it finds there decides whether it is clicked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labkit.batching.strategies import Layout
from labkit.layouts.batch import Batch
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.packed import PackedBatch
from labkit.layouts.padded import PaddedBatch
from labkit.layouts.segments import piece_ids, row_ids, segment_sum
from labkit.layouts.softmax import masked_softmax, segment_softmax
from labkit.layouts.sparse import SparseBatch
from labkit.layouts.spmm import spmm
from labkit.models.base import Loss, RaggedModel, binary_loss, field, real_rows
from labkit.models.layers import mlp
from labkit.models.registry import ITEMS, WIDTH


class Din(RaggedModel):
    """Deep Interest Network.

    Fields: ``items`` (one id an event), ``target`` (the candidate's id) and ``label`` (1 = clicked) a row. Forward
    gives the logit of a click, (R,), or (S,) of packed pieces. A user without history has interest exactly 0.

    Args:
        items: size of the embedding table.
        width: D.
        attention: hidden layers of the unit that scores one event, on [h, q, h - q, h * q].
        head: hidden layers on [interest, q].

    Source: Zhou et al., Deep Interest Network for Click-Through Rate Prediction, KDD 2018, section 4.3 and figure 2;
        here the scores go through a softmax, which the paper leaves out.
    """

    takes = (Layout.PADDED, Layout.JAGGED, Layout.PACKED_ROWS, Layout.SPARSE)

    def __init__(
        self,
        *,
        items: int = ITEMS,
        width: int = WIDTH,
        attention: Sequence[int] = (80, 40),
        head: Sequence[int] = (80, 40),
    ) -> None:
        """Build the layers with torch's default initialization."""
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.attention = mlp(4 * width, attention)
        self.head = mlp(2 * width, head)

    def forward(self, batch: Batch) -> Tensor:
        """(R,) or (S,) logits of a click.

        Raises:
            PolicyError: a layout that it does not take.
            ShapeError: a field is missing.
        """
        self.check(batch)
        target = self.table(field(batch, "target"))
        interest = self._interest(batch, self.table(field(batch, "items")), target)
        return self.head(torch.cat([interest, target], dim=-1)).squeeze(-1)  # type: ignore[no-any-return]

    def loss(self, batch: Batch) -> Loss:
        """Binary cross-entropy over real rows."""
        logits = self(batch)
        return binary_loss(logits, field(batch, "label"), real_rows(batch, logits.shape[0]))

    def _interest(self, batch: Batch, events: Tensor, target: Tensor) -> Tensor:
        """(R, D): events (R, L, D) or (T, D), each weighted by what the candidate (R, D) makes of it."""
        if isinstance(batch, PaddedBatch):
            scores = self._scores(events, target[:, None].expand_as(events))
            return torch.bmm(masked_softmax(scores, batch.valid)[:, None], events)[:, 0]
        if isinstance(batch, JaggedBatch):
            ids = row_ids(batch.offsets, events.shape[0])
            return self._pooled(events, target[ids], ids, target.shape[0])
        if isinstance(batch, PackedBatch):
            pieces = batch.lengths.shape[0]
            ids = piece_ids(batch).view(-1)  # padding is a piece of its own, after all others
            return self._pooled(events.flatten(0, 1), target[ids.clamp(max=pieces - 1)], ids, pieces + 1)[:pieces]
        if isinstance(batch, SparseBatch):  # the weights are the entries of a matrix, rows x events
            ids, each = batch.row_ids, torch.arange(events.shape[0], device=events.device)
            weights = segment_softmax(self._scores(events, target[ids]), ids, target.shape[0])
            pooled: Tensor = spmm(weights, batch.offsets, each, ids, events)
            return pooled
        raise self.refusal(batch)

    def _pooled(self, events: Tensor, target: Tensor, ids: Tensor, rows: int) -> Tensor:
        """(R, D) of (T, D) events, the (T, D) candidate of each, and the (T,) row of each."""
        weights = segment_softmax(self._scores(events, target), ids, rows)
        return segment_sum(weights[:, None] * events, ids, rows)

    def _scores(self, events: Tensor, target: Tensor) -> Tensor:
        """What the activation unit says of each event: (..., D) and (..., D) -> (...)."""
        return self.attention(torch.cat([events, target, events - target, events * target], dim=-1)).squeeze(-1)  # type: ignore[no-any-return]
