"""Models never ask the device for a number: they run on meta, and no op of a step waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from labkit.batching.strategies import Layout
from labkit.layouts.moving import to_device
from labkit.models.registry import MODELS, Model
from tests.models.agreement import batch_of, small_model, step
from tests.models.host_syncs import HostSyncs

ALL = [(model, layout) for model in (Model.DIN, Model.POOLED, Model.CTR) for layout in MODELS[model].takes]


@pytest.mark.parametrize(("model", "layout"), ALL, ids=str)
def test_a_training_step_waits_for_nothing(model: Model, layout: Layout) -> None:
    module, batch = small_model(model), batch_of(model, layout)
    with HostSyncs() as syncs:
        step(module, batch)
    assert syncs.found == []


@pytest.mark.parametrize(("model", "layout"), ALL, ids=str)
def test_a_training_step_runs_on_meta(model: Model, layout: Layout) -> None:
    module = small_model(model).to("meta")
    expected = small_model(model)(batch_of(model, layout))
    batch = to_device(batch_of(model, layout), "meta")
    output, loss, gradients = step(module, batch)
    assert (output.device.type, output.shape, output.dtype) == ("meta", expected.shape, expected.dtype)
    assert loss.total.shape == loss.targets.shape == ()
    assert set(gradients) == {name for name, _ in module.named_parameters()}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.sum().item(), "_local_scalar_dense"),
        (lambda x: float(x[0]), "_local_scalar_dense"),
        (lambda x: x[x > 1], "index"),
        (lambda x: torch.masked_select(x, x > 1), "masked_select"),
        (lambda x: (x > 1).nonzero(), "nonzero"),
        (lambda x: x.repeat_interleave(torch.tensor([1, 2, 0])), "repeat_interleave"),
        (lambda x: 1 if x.any() else 0, "_local_scalar_dense"),
    ],
    ids=["item", "float", "mask", "select", "nonzero", "repeat", "if"],
)
def test_the_check_sees_what_waits(call: Callable[[Tensor], object], name: str) -> None:
    with HostSyncs() as syncs:
        call(torch.tensor([1, 2, 3]))
    assert name in syncs.found


@pytest.mark.parametrize("call", [Tensor.tolist, Tensor.numpy, Tensor.nonzero, Tensor.item])
def test_meta_refuses_what_no_op_shows(call: Callable[[Tensor], object]) -> None:
    with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
        call(torch.tensor([1], device="meta"))
