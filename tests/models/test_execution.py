"""Models of one output a row under mixed precision and as one compiled graph."""

from __future__ import annotations

import pytest
import torch

from labkit.batching.strategies import Layout
from labkit.models.registry import MODELS, Model
from tests.models.agreement import batch_of, small_model, step

ALL = [(model, layout) for model in (Model.DIN, Model.POOLED, Model.CTR) for layout in MODELS[model].takes]


@pytest.mark.parametrize(("model", "layout"), ALL, ids=str)
def test_the_loss_in_bfloat16_is_near_that_in_float32(model: Model, layout: Layout) -> None:
    module, batch = small_model(model), batch_of(model, layout)
    _, expected, expected_gradients = step(module, batch)
    with torch.autocast("cpu", torch.bfloat16):
        _, loss, gradients = step(module, batch)
    assert loss.total.dtype == torch.float32
    # bfloat16 has 8 bits: 2**-8 = 0.004
    torch.testing.assert_close(loss.mean, expected.mean, rtol=0.01, atol=0)
    assert {gradient.dtype for gradient in gradients.values()} == {torch.float32}
    whole, exact = (torch.cat([g[name].flatten() for name in gradients]) for g in (gradients, expected_gradients))
    # single entries cancel, the whole has the same direction
    assert torch.cosine_similarity(whole, exact, dim=0) > 0.999


@pytest.mark.parametrize("layout", MODELS[Model.DIN].takes, ids=str)
def test_a_loss_is_one_graph_for_the_compiler(layout: Layout) -> None:
    # fullgraph: a break, which a sync or an unknown op makes, is an error; the backend runs the traced ops as they are
    module, batch = small_model(Model.DIN), batch_of(Model.DIN, layout)
    torch._dynamo.reset()
    compiled = torch.compile(module.loss, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch).total, module.loss(batch).total)
