"""GRU4Rec: a recurrent network reads the history and predicts the next item."""

from __future__ import annotations

from torch import Tensor, nn

from labkit.batching.strategies import Layout
from labkit.layouts.batch import Batch
from labkit.layouts.history_order import follows, last_events
from labkit.layouts.masks import zero_padding
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.models.base import Loss, RaggedModel, field
from labkit.models.fused import gru
from labkit.models.next_item import next_item_loss
from labkit.models.registry import ITEMS, WIDTH


class Gru4Rec(RaggedModel):
    """Recurrent network of sessions.

    Fields: ``items`` (one id an event) and ``negatives`` (one id an event that the user did not choose then). Forward
    gives the state after the last event, (R, D); its product with an item's embedding is that item's score
    (``scores``). A user without history has exactly 0.

    Padded, the network runs through the padding behind the last event, and its state is taken before that. As a packed
    sequence it runs over real events alone, of fewer and fewer rows. ``torch.compile`` breaks its graph around the
    network, which Dynamo does not trace.

    Args:
        items: size of the embedding table, which scores are computed with too.
        width: D of embeddings and of the hidden state.
        layers: of the network.

    Source: Hidasi et al., Session-based Recommendations with Recurrent Neural Networks, ICLR 2016. The loss is that of
        SASRec, one sampled item a target, not the paper's BPR or TOP1 over the other items of the batch: that would
        depend on which users share a batch, so that layouts and strategies could not be compared.
    """

    takes = (Layout.PADDED, Layout.PACKED_SEQUENCE)

    def __init__(self, *, items: int = ITEMS, width: int = WIDTH, layers: int = 1) -> None:
        """Build the layers; embeddings have the variance 1 / D, so that first scores are about 1."""
        super().__init__()
        self.table = nn.Embedding(items, width)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.gru = nn.GRU(width, width, layers, batch_first=True)

    def forward(self, batch: Batch) -> Tensor:
        """(R, D), the state of each user after the last event.

        Raises:
            PolicyError: a layout that it does not take.
            ShapeError: a missing field.
        """
        events = self.table(field(batch, "items"))
        if isinstance(batch, PackedSequenceBatch):
            return batch.last(self._run(batch, events)[1])
        if isinstance(batch, PaddedBatch):
            return last_events(gru(self.gru, events)[0], batch)
        raise self.refusal(batch)

    def states(self, batch: Batch) -> Tensor:
        """State after each event: (R, L, D), 0 in padding; of a packed sequence (T, D), row after row."""
        events = self.table(field(batch, "items"))
        if isinstance(batch, PackedSequenceBatch):
            return batch.unpack(self._run(batch, events)[0])
        if isinstance(batch, PaddedBatch):
            return zero_padding(gru(self.gru, events)[0], batch.valid)
        raise self.refusal(batch)

    def loss(self, batch: Batch) -> Loss:
        """Binary cross-entropy of each next item against one that was not chosen; see ``next_item_loss``."""
        events, negatives = self.table(field(batch, "items")), field(batch, "negatives")
        if isinstance(batch, PackedSequenceBatch):
            after = follows(batch, batch.events)
            states = batch.unpack(self._run(batch, events)[0])
            return next_item_loss(states, batch.unpack(events), self.table(batch.unpack(negatives)[1:]), after)
        if isinstance(batch, PaddedBatch):
            states = gru(self.gru, events)[0]
            return next_item_loss(states, events, self.table(negatives[:, 1:]), follows(batch, events.shape[0]))
        raise self.refusal(batch)

    def scores(self, states: Tensor) -> Tensor:
        """(R, items), of the states that forward gives: 2 * R * D * items operations."""
        return states @ self.table.weight.T

    def _run(self, batch: PackedSequenceBatch, events: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (T, D) as the values lie, and last states (n, D) of the rows that have events."""
        if not batch.events:  # torch's network refuses that; a step over nothing gives all weights the gradient 0
            output, last = gru(self.gru, events.new_zeros(1, 1, events.shape[-1]))
            return output[0, :0], last[:0]
        return gru(self.gru, batch.packed(events))
