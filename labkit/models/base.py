"""RaggedModel: a torch module that takes a batch in several layouts, and says what its loss counts."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from labkit.batching.strategies import Layout
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.batch import BATCHES, Batch
from labkit.layouts.packed import PackedBatch


class Loss(NamedTuple):
    """A loss that adds up over batches and ranks: sum and count, never a mean of means.

    Attributes:
        total: () sum of the losses of the real targets.
        targets: () int64, how many; both stay on the device.
    """

    total: Tensor
    targets: Tensor

    @property
    def mean(self) -> Tensor:
        """() mean over the targets; 0 where there are none."""
        return self.total / self.targets.clamp(min=1)


class RaggedModel(nn.Module):
    """A model of ragged sequences. The same weights give the same output under every layout that it takes.

    Forward and loss ask the device for nothing: sizes come from shapes, so that a model runs on ``meta`` and can be
    captured in a CUDA graph. ``batch.rows`` may be an int or, where a graph is replayed, a () tensor.

    Attributes:
        takes: the layouts.
    """

    takes: ClassVar[tuple[Layout, ...]] = ()

    def forward(self, batch: Batch) -> Tensor:
        """One output a row (packed: a piece) or an event; what it holds is said by each model."""
        raise NotImplementedError

    def loss(self, batch: Batch) -> Loss:
        """Loss over the real targets: ghost rows and padding do not count."""
        raise NotImplementedError

    def vocabulary(self, name: str) -> int | None:
        """How many ids of a field the model has rows for; None where it does not look them up."""
        table = getattr(self, "table", None)  # one table for items, targets and negatives
        return table.num_embeddings if isinstance(table, nn.Embedding) else None

    def check(self, batch: Batch) -> None:
        """Refuse a batch of a layout that the model does not take; a forward begins with it.

        Raises:
            PolicyError: it is none of ``takes``.
        """
        kinds = tuple(BATCHES[layout] for layout in self.takes)
        if not isinstance(batch, kinds):
            raise self.refusal(batch)

    def refusal(self, batch: Batch) -> PolicyError:
        """The error for a batch that the model does not take."""
        names = " or ".join(BATCHES[layout].__name__ for layout in self.takes)
        return PolicyError(f"{type(self).__name__} does not take a {type(batch).__name__}: give it a {names}.")


def field(batch: Batch, name: str) -> Tensor:
    """A named field of a batch.

    Raises:
        ShapeError: samples without names, or without this one.
    """
    values = batch.values
    if isinstance(values, dict) and name in values:
        return values[name]
    got = ", ".join(values) if isinstance(values, dict) else "one field without a name"
    raise ShapeError(f"the batch has no field {name!r}: got {got}. Give samples as mappings with that name.")


def real_rows(batch: Batch, count: int) -> Tensor:
    """(R,) bool, False for ghost rows: which of ``count`` outputs count. Of a packed batch all (S,) pieces do."""
    rows = count if isinstance(batch, PackedBatch) else batch.rows
    device = next(iter(batch.values.values())).device if isinstance(batch.values, dict) else batch.values.device
    return torch.arange(count, device=device) < rows


def binary_loss(logits: Tensor, labels: Tensor, real: Tensor) -> Loss:
    """Binary cross-entropy of (R,) or (R, tasks) logits, summed over the rows that are ``real`` (R,)."""
    each = nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
    real = real.view(-1, *[1] * (logits.ndim - 1)).expand_as(logits)
    return Loss(each.masked_fill(~real, 0).sum(), real.sum())
