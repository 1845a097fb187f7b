"""FieldTables: the embedding tables of many fields, and the one place where they are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from labkit.layouts.batch import Batch
from labkit.models.base import field
from labkit.models.pooling import Pooling, pool
from labkit.models.registry import FieldSpec


class FieldTables(nn.Module):
    """One table a field, looked up one after another: the plain version, with as many launches as there are fields.

    A faster one (tables fused into one, grouped bags) takes its place in a model if it has the same ``forward``.

    Args:
        fields: those with a vocabulary are looked up, in this order; of events the mean is taken.
        width: D of every table.
        shared: field -> the field whose table it uses.

    Attributes:
        tables: (V, D) each, ``items_table`` for the field ``items``.
        outputs: columns of ``forward``, one D a field.
    """

    def __init__(self, fields: Sequence[FieldSpec], width: int, shared: Mapping[str, str]) -> None:
        """Build the tables with torch's default initialization."""
        super().__init__()
        ids = [spec for spec in fields if spec.vocabulary]
        self.fields = tuple((spec.name, spec.per, shared.get(spec.name, spec.name)) for spec in ids)
        sizes = {spec.name: spec.vocabulary for spec in ids if spec.vocabulary and spec.name not in shared}
        self.tables = nn.ModuleDict({f"{name}_table": nn.Embedding(size, width) for name, size in sizes.items()})
        self.outputs = width * len(self.fields)

    def forward(self, batch: Batch) -> Tensor:
        """(R, outputs): the embeddings of all fields side by side."""
        return torch.cat([self._looked_up(batch, *each) for each in self.fields], dim=-1)

    def vocabulary(self, name: str) -> int | None:
        """Rows of the table of a field; None where it has none."""
        owners = {known: owner for known, _, owner in self.fields}
        table = self.tables[f"{owners[name]}_table"] if name in owners else None
        return table.num_embeddings if isinstance(table, nn.Embedding) else None

    def _looked_up(self, batch: Batch, name: str, per: str, owner: str) -> Tensor:
        table: Tensor = self.tables[f"{owner}_table"].weight  # type: ignore[assignment]
        if per == "event":
            return pool(table, batch, name, Pooling.MEAN)
        return nn.functional.embedding(field(batch, name), table)
