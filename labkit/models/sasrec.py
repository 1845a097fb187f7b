"""SASRec: a causal transformer over the history predicts the next item."""

from __future__ import annotations

from torch import Tensor, nn

from labkit.batching.fields import choice
from labkit.batching.strategies import Layout
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.batch import Batch
from labkit.layouts.history_order import Histories, follows, last_events
from labkit.layouts.jagged_batch import JaggedBatch, longest_row
from labkit.layouts.masks import Side, zero_padding
from labkit.layouts.packed import PackedBatch
from labkit.layouts.padded import PaddedBatch
from labkit.models.base import Loss, RaggedModel, field
from labkit.models.causal_attention import CausalAttention
from labkit.models.next_item import next_item_loss
from labkit.models.registry import ITEMS, POSITIONS, WIDTH, above_positions


class Block(nn.Module):
    """Self-attention, then a network of two layers on each event; both normalize what comes in and add it again."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        """Build the layers with torch's default initialization."""
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, events: Tensor, attend: CausalAttention) -> Tensor:
        """(R, L, D) or (T, D) -> the same."""
        events = events + self.drop(attend(self.project(self.before_attention(events)), self.heads))
        return events + self.drop(self.network(self.before_network(events)))  # type: ignore[no-any-return]


class SasRec(RaggedModel):
    """Self-attentive sequential recommendation.

    Fields: ``items`` (one id an event) and ``negatives`` (one id an event that the user did not choose then). Forward
    gives what the model knows of a user after the last event, (R, D), or (S, D) of packed pieces; its product with an
    item's embedding is that item's score (``scores``). A user without history has exactly 0.

    Positions count from the oldest event that was kept, 0, in every layout and on whatever side a rectangle is padded.
    (The paper pads on the left and numbers slots, so that an event knows how many come after it; here it does not.)

    Args:
        items: size of the embedding table, which scores are computed with too.
        width: D.
        blocks: of attention and point-wise network.
        heads: of attention; they divide D.
        max_positions: longest history: a padded width, a pack's capacity or a jagged batch's longest row.
        dropout: share of what the embedding and the blocks add that is zeroed in training.
        padding: side of a padded rectangle that is padding; ``collate`` pads on the right.

    Source: Kang & McAuley, Self-Attentive Sequential Recommendation, ICDM 2018, section 3.
    """

    takes = (Layout.PADDED, Layout.JAGGED, Layout.PACKED_ROWS)

    def __init__(
        self,
        *,
        items: int = ITEMS,
        width: int = WIDTH,
        blocks: int = 2,
        heads: int = 1,
        max_positions: int = POSITIONS,
        dropout: float = 0.0,
        padding: Side | str = Side.RIGHT,
    ) -> None:
        """Build the layers; embeddings have the variance 1 / D, so that first scores are about 1.

        Raises:
            PolicyError: heads that do not divide the width, a side that is none.
        """
        super().__init__()
        if width % heads:
            raise PolicyError(
                f"heads must divide the width: got heads={heads}, width={width}. Use a divisor of {width}."
            )
        self.table, self.positions = nn.Embedding(items, width), nn.Embedding(max_positions, width)
        for table in (self.table, self.positions):
            nn.init.normal_(table.weight, std=width**-0.5)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(blocks))
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        self.padding = choice("padding", padding, Side)

    def forward(self, batch: Batch) -> Tensor:
        """(R, D) or (S, D), what is known of each user after the last event.

        Raises:
            PolicyError: a layout that it does not take.
            ShapeError: a missing field; rows longer than ``max_positions``.
        """
        histories = self._checked(batch)
        states = self._encode(histories, self.table(field(batch, "items")))
        return last_events(states, histories, self.padding)

    def states(self, batch: Batch) -> Tensor:
        """(R, L, D) or (T, D), what is known after each event; 0 in padding."""
        histories = self._checked(batch)
        states = self._encode(histories, self.table(field(batch, "items")))
        if isinstance(histories, JaggedBatch):
            return states
        real = histories.valid if isinstance(histories, PaddedBatch) else histories.segment_ids != 0
        return zero_padding(states, real)

    def loss(self, batch: Batch) -> Loss:
        """Binary cross-entropy of each next item against one that was not chosen; see ``next_item_loss``."""
        histories = self._checked(batch)
        events = self.table(field(batch, "items"))
        refused = self.table(field(batch, "negatives")[..., 1:])
        return next_item_loss(self._encode(histories, events), events, refused, follows(histories, events.shape[0]))

    def scores(self, states: Tensor) -> Tensor:
        """(R, items), of the states that forward gives: 2 * R * D * items operations."""
        return states @ self.table.weight.T

    def _encode(self, batch: Histories, events: Tensor) -> Tensor:
        attend = CausalAttention.of(batch, events.shape[0], self.padding)
        known = self.positions.weight
        places = known[: events.shape[1]] if attend.positions is None else self.positions(attend.positions)
        events = self.drop(events + places)
        for block in self.blocks:
            events = block(events, attend)
        return self.norm(events)  # type: ignore[no-any-return]

    def _checked(self, batch: Batch) -> Histories:
        """The batch, if the model takes it and has as many positions; asks no device."""
        if isinstance(batch, JaggedBatch):
            what, longest = "longest row", longest_row(batch)
        elif isinstance(batch, PaddedBatch):
            what, longest = "width", batch.valid.shape[1]
        elif isinstance(batch, PackedBatch):
            what, longest = "width of the packs", batch.segment_ids.shape[1]
        else:
            raise self.refusal(batch)
        most = self.positions.num_embeddings
        if longest > most:
            raise ShapeError(above_positions(what, longest, most))
        return batch
