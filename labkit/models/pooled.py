"""PooledTower: two towers, a user who is the average of the history, an item, and their product."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from labkit.batching.strategies import Layout
from labkit.layouts.batch import Batch
from labkit.models.base import Loss, RaggedModel, binary_loss, field, real_rows
from labkit.models.layers import mlp
from labkit.models.pooling import Pooling, pool
from labkit.models.registry import ITEMS, WIDTH


class PooledTower(RaggedModel):
    """Pooled-embedding tower, the retrieval model whose cost is memory traffic.

    Fields: ``items`` (one id an event), ``target`` (the candidate's id) and ``label`` (1 = chosen) a row. Forward gives
    the logit, (R,), or (S,) of packed pieces. A user without history is the tower of exactly 0.

    Args:
        items: size of the embedding table.
        width: D.
        hidden: layers of the user's tower.
        pooling: of the history; ``max`` is not for the sparse layout.

    Source: Covington et al., Deep Neural Networks for YouTube Recommendations, RecSys 2016, section 3.
    """

    takes = (Layout.PADDED, Layout.JAGGED, Layout.SEGMENTED, Layout.PACKED_ROWS, Layout.SPARSE)

    def __init__(
        self,
        *,
        items: int = ITEMS,
        width: int = WIDTH,
        hidden: Sequence[int] = (64,),
        pooling: Pooling | str = Pooling.MEAN,
    ) -> None:
        """Build the layers with torch's default initialization."""
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.tower = mlp(width, hidden, width)
        self.pooling = Pooling(pooling)

    def forward(self, batch: Batch) -> Tensor:
        """(R,) or (S,) logits.

        Raises:
            PolicyError: a layout that it does not take.
            ShapeError: a field is missing.
        """
        self.check(batch)
        user = self.tower(pool(self.table.weight, batch, "items", self.pooling))
        return (user * self.table(field(batch, "target"))).sum(-1)  # type: ignore[no-any-return]

    def loss(self, batch: Batch) -> Loss:
        """Binary cross-entropy over real rows."""
        logits = self(batch)
        return binary_loss(logits, field(batch, "label"), real_rows(batch, logits.shape[0]))
