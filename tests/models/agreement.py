"""What the tests of models share: one batch in every layout, outputs brought back to rows, and what they must equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from labkit.batching.strategies import Layout
from labkit.layouts.batch import Batch
from labkit.models.base import Loss, RaggedModel
from labkit.models.inputs import example_batch, packs_of
from labkit.models.registry import MODELS, Model, ModelSpec

#: Ragged rows: empty ones, single events, one far longer than the rest.
RAGGED = (3, 0, 1, 150, 7, 1, 0, 12)


#: Ids are below this, so that rows share some and tables stay small.
IDS = 50


def small_spec(model: Model) -> ModelSpec:
    """The spec with small vocabularies."""
    spec = MODELS[model]
    fields = (replace(field, vocabulary=field.vocabulary and min(field.vocabulary, IDS)) for field in spec.fields)
    return replace(spec, fields=tuple(fields))


def small_model(model: Model) -> RaggedModel:
    """A model with small tables, the same one each time."""
    torch.manual_seed(0)
    spec = small_spec(model)
    return spec.build(fields=spec.fields) if model is Model.CTR else spec.build(items=IDS)


def batch_of(
    model: Model, layout: Layout, lengths: Sequence[int] = RAGGED, *, ghosts: int = 0, wider: int = 0, seed: int = 0
) -> Batch:
    """A batch with ghost rows and spare width where the layout has such."""
    spec = small_spec(model)
    if layout is Layout.PACKED_ROWS:
        return example_batch(spec, layout, lengths, capacity=max(1, *lengths) + wider, seed=seed)
    width = max(1, *lengths) + wider if layout is Layout.PADDED else None
    return example_batch(spec, layout, lengths, rows=len(lengths) + ghosts, width=width, seed=seed)


def by_rows(output: Tensor, layout: Layout, lengths: Sequence[int], *, wider: int = 0) -> Tensor:
    """Outputs of the real rows in their own order."""
    if layout is Layout.PACKED_ROWS:
        return output[torch.from_numpy(packs_of(lengths, max(1, *lengths) + wider).inverse)]
    return output[: len(lengths)]


def step(module: RaggedModel, batch: Batch) -> tuple[Tensor, Loss, dict[str, Tensor]]:
    """Forward, loss and backward of its mean: the output, the loss and the gradients by parameter."""
    module.zero_grad(set_to_none=True)
    output, loss = module(batch), module.loss(batch)
    loss.mean.backward()
    gradients = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    return output.detach(), loss, gradients
