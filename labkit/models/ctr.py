"""Ctr: many sparse fields and a few dense ones, one shared network, several tasks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labkit.batching.strategies import Layout
from labkit.layouts.batch import Batch
from labkit.models.base import Loss, RaggedModel, binary_loss, field, real_rows
from labkit.models.field_tables import FieldTables
from labkit.models.layers import mlp
from labkit.models.registry import MODELS, WIDTH, FieldSpec, Model

#: The candidate is looked up where the history is.
SHARED = {"target": "items", "target_category": "categories", "target_shop": "shops"}


class Ctr(RaggedModel):
    """Click-through-rate model: embeddings of all fields and the dense features, a shared MLP, a head a task.

    Fields: those of the registry: ids an event or a row, ``dense`` (R, F) and ``labels`` (R, tasks). Forward gives
    (R, tasks) logits, click and conversion, or (S, tasks) of packed pieces.

    Args:
        fields: of a sample; None: those of the registry.
        width: D of every table.
        shared_layers: hidden layers of the shared network; its last one feeds the heads.
        head: hidden layers of each task's head.

    Source: Caruana, Multitask Learning, Machine Learning 28, 1997: one shared network, a head a task.
    """

    takes = (Layout.PADDED, Layout.JAGGED, Layout.SEGMENTED, Layout.PACKED_ROWS, Layout.SPARSE)

    def __init__(
        self,
        *,
        fields: Sequence[FieldSpec] | None = None,
        width: int = WIDTH,
        shared_layers: Sequence[int] = (256, 128),
        head: Sequence[int] = (64,),
    ) -> None:
        """Build the layers with torch's default initialization."""
        super().__init__()
        fields = MODELS[Model.CTR].fields if fields is None else tuple(fields)
        sizes = {spec.name: spec.shape[0] for spec in fields if spec.name in ("dense", "labels")}
        self.tables = FieldTables(fields, width, SHARED)
        self.shared = nn.Sequential(
            mlp(self.tables.outputs + sizes["dense"], shared_layers[:-1], shared_layers[-1]), nn.PReLU()
        )
        self.heads = nn.ModuleList(mlp(shared_layers[-1], head) for _ in range(sizes["labels"]))

    def vocabulary(self, name: str) -> int | None:
        """How many ids of a field the model has rows for; None where it does not look them up."""
        return self.tables.vocabulary(name)

    def forward(self, batch: Batch) -> Tensor:
        """(R, tasks) logits.

        Raises:
            PolicyError: a layout that it does not take.
            ShapeError: a field is missing.
        """
        self.check(batch)
        inputs = torch.cat([self.tables(batch), field(batch, "dense")], dim=-1)
        shared = self.shared(inputs)
        return torch.cat([head(shared) for head in self.heads], dim=-1)

    def loss(self, batch: Batch) -> Loss:
        """Binary cross-entropy over the labels of real rows: a row has as many targets as there are tasks."""
        logits = self(batch)
        return binary_loss(logits, field(batch, "labels"), real_rows(batch, logits.shape[0]))
