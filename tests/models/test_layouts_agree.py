"""Models of one output a row: the same output, loss and gradients in every layout, whatever the lengths."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from labkit.batching.strategies import Layout
from labkit.models.registry import MODELS, Model
from tests.models.agreement import IDS, RAGGED, batch_of, by_rows, small_model, step

ROW_MODELS = (Model.DIN, Model.POOLED, Model.CTR)
OTHERS = [(model, layout) for model in ROW_MODELS for layout in MODELS[model].takes if layout is not Layout.PADDED]


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("lengths", [RAGGED, (0, 0, 0), (1,), (1, 1, 1, 1), (33, 32, 31)], ids=str)
@pytest.mark.parametrize(("model", "layout"), OTHERS, ids=str)
def test_every_layout_gives_what_the_padded_one_gives(
    model: Model, layout: Layout, lengths: Sequence[int], training: bool
) -> None:
    module = small_model(model).train(training)
    expected, expected_loss, expected_gradients = step(module, batch_of(model, Layout.PADDED, lengths))
    output, loss, gradients = step(module, batch_of(model, layout, lengths))
    torch.testing.assert_close(by_rows(output, layout, lengths), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(loss.mean, expected_loss.mean, rtol=1e-5, atol=1e-5)
    assert int(loss.targets) == int(expected_loss.targets)
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize(("model", "layout"), [(m, a) for m in ROW_MODELS for a in MODELS[m].takes], ids=str)
def test_ghost_rows_and_spare_width_change_nothing(model: Model, layout: Layout) -> None:
    module = small_model(model)
    ghosts = 0 if layout is Layout.PACKED_ROWS else 3
    expected, expected_loss, expected_gradients = step(module, batch_of(model, layout))
    output, loss, gradients = step(module, batch_of(model, layout, ghosts=ghosts, wider=5))
    torch.testing.assert_close(
        by_rows(output, layout, RAGGED, wider=5), by_rows(expected, layout, RAGGED), rtol=1e-5, atol=1e-5
    )
    assert loss.targets == expected_loss.targets
    torch.testing.assert_close(loss.total, expected_loss.total, rtol=1e-5, atol=1e-5)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("layout", MODELS[Model.DIN].takes, ids=str)
def test_a_user_without_history_has_interest_0_and_finite_gradients(layout: Layout, training: bool) -> None:
    din = small_model(Model.DIN).train(training)
    batch = batch_of(Model.DIN, layout)
    output, _, gradients = step(din, batch)
    target = din.get_submodule("table")(batch_of(Model.DIN, Layout.JAGGED).values["target"])  # type: ignore[index, call-overload]
    nothing = torch.cat([torch.zeros_like(target), target], dim=-1)
    expected = din.get_submodule("head")(nothing)[:, 0]
    empty = [row for row, length in enumerate(RAGGED) if length == 0]
    torch.testing.assert_close(by_rows(output, layout, RAGGED)[empty], expected[empty])
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@pytest.mark.parametrize("model", ROW_MODELS)
def test_a_different_event_gives_another_output(model: Model) -> None:
    # the agreement above would also hold for a model that never looks at the history
    module, batch = small_model(model), batch_of(model, Layout.JAGGED)
    values = batch.values
    assert isinstance(values, dict)
    before = module(batch)
    values["items"] = values["items"].clone()
    values["items"][3] = (values["items"][3] + 1) % IDS  # the only event of row 2
    changed = (module(batch) != before).flatten(1).any(1) if model is Model.CTR else module(batch) != before
    assert changed.tolist() == [row == 2 for row in range(len(RAGGED))]
