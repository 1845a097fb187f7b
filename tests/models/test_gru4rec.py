"""GRU4Rec: padded equals packed, and both the loop over users; the loss; what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from labkit.batching.strategies import Layout
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.moving import to_device
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.models.gru4rec import Gru4Rec
from labkit.models.registry import MODELS, Model
from tests.models.agreement import IDS, RAGGED, batch_of, by_rows, small_model, small_spec, step
from tests.models.host_syncs import HostSyncs

LAYOUTS = MODELS[Model.GRU4REC].takes
CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}


def gru4rec(**sizes: Any) -> Gru4Rec:
    torch.manual_seed(0)
    return Gru4Rec(items=IDS, **sizes)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("lengths", [RAGGED, (0, 0, 0), (1,), (1, 1, 1, 1), (33, 32, 31)], ids=str)
@pytest.mark.parametrize("layers", [1, 2])
def test_packed_gives_what_padded_gives(lengths: Sequence[int], training: bool, layers: int) -> None:
    model = gru4rec(layers=layers).train(training)
    expected, expected_loss, expected_gradients = step(model, batch_of(Model.GRU4REC, Layout.PADDED, lengths))
    output, loss, gradients = step(model, batch_of(Model.GRU4REC, Layout.PACKED_SEQUENCE, lengths))
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(loss.total, expected_loss.total, **CLOSE)
    assert loss.targets == expected_loss.targets == sum(max(0, length - 1) for length in lengths)
    assert gradients.keys() == expected_gradients.keys() == dict(model.named_parameters()).keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], msg=name, **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_states_are_those_of_the_loop_over_users(layout: Layout) -> None:
    # C24, and C23: users without history have exactly 0
    model, padded = gru4rec(), batch_of(Model.GRU4REC, Layout.PADDED)
    assert isinstance(padded, PaddedBatch)
    assert isinstance(padded.values, dict)
    users = [model.table(items[:n]) for items, n in zip(padded.values["items"], RAGGED, strict=True)]
    loop = [model.gru(user[None])[0][0] if len(user) else user.new_zeros(0, 32) for user in users]
    batch = batch_of(Model.GRU4REC, layout)
    states = model.states(batch)
    states = states if isinstance(batch, PackedSequenceBatch) else states[padded.valid]
    torch.testing.assert_close(states, torch.cat(loop), atol=1e-6, rtol=0)
    last = torch.stack([own[-1] if len(own) else own.new_zeros(32) for own in loop])
    torch.testing.assert_close(model(batch), last, atol=1e-6, rtol=0)
    assert model(batch)[[1, 6]].eq(0).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_ghost_rows_and_spare_width_change_nothing(layout: Layout) -> None:
    model = gru4rec()
    expected, expected_loss, expected_gradients = step(model, batch_of(Model.GRU4REC, layout))
    output, loss, gradients = step(model, batch_of(Model.GRU4REC, layout, ghosts=3, wider=5))
    torch.testing.assert_close(by_rows(output, layout, RAGGED), expected, **CLOSE)
    assert output[len(RAGGED) :].eq(0).all()
    torch.testing.assert_close(loss.total, expected_loss.total, **CLOSE)
    assert loss.targets == expected_loss.targets
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], msg=name, **CLOSE)


def test_what_lies_in_padding_does_not_matter() -> None:
    model, batch = gru4rec(), batch_of(Model.GRU4REC, Layout.PADDED, wider=5)
    expected, expected_loss, expected_gradients = step(model, batch)
    assert isinstance(batch, PaddedBatch)
    assert isinstance(batch.values, dict)
    for field in batch.values.values():
        field[~batch.valid] = 7
    output, loss, gradients = step(model, batch)
    assert torch.equal(output, expected)
    torch.testing.assert_close(loss.total, expected_loss.total, **CLOSE)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], msg=name, **CLOSE)


def test_a_different_event_gives_another_state() -> None:
    model, batch = gru4rec(), batch_of(Model.GRU4REC, Layout.PADDED, (3, 2))
    assert isinstance(batch.values, dict)
    before = model(batch)
    batch.values["items"][0, 0] += 1 if batch.values["items"][0, 0] + 1 < IDS else -1
    assert (model(batch) != before).any(1).tolist() == [True, False]


def test_scores_are_products_with_all_items() -> None:
    model, batch = gru4rec(), batch_of(Model.GRU4REC, Layout.PADDED, (3, 0))
    states = model(batch)
    torch.testing.assert_close(model.scores(states)[0, 7], states[0] @ model.table.weight[7], **CLOSE)
    assert model.scores(states).shape == (2, IDS)


def test_layouts_that_it_does_not_take() -> None:
    batch = batch_of(Model.SASREC, Layout.JAGGED)
    message = r"^Gru4Rec does not take a JaggedBatch: give it a PaddedBatch or PackedSequenceBatch\.$"
    for call in (gru4rec(), gru4rec().loss, gru4rec().states):
        with pytest.raises(PolicyError, match=message):
            call(batch)
    with pytest.raises(ShapeError, match=r"^the batch has no field 'items': got one field without a name\. "):
        gru4rec()(PaddedBatch(torch.zeros(1, 1), torch.ones(1), torch.ones(1, 1).bool(), 1))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_step_runs_on_meta_and_asks_nothing(layout: Layout) -> None:
    model, batch = small_model(Model.GRU4REC).to("meta"), to_device(batch_of(Model.GRU4REC, layout), "meta")
    expected = small_model(Model.GRU4REC)(batch_of(Model.GRU4REC, layout))
    with HostSyncs() as syncs:
        output, loss, gradients = step(model, batch)
    assert syncs.found == []
    assert (output.is_meta, output.shape, loss.total.shape) == (True, expected.shape, ())
    assert gradients.keys() == dict(model.named_parameters()).keys()


def test_on_a_real_device_torch_alone_reads_batch_sizes_which_are_on_the_host() -> None:
    model, padded = gru4rec(), batch_of(Model.GRU4REC, Layout.PADDED)
    with HostSyncs() as syncs:
        step(model, padded)
    assert syncs.found == []
    batch = batch_of(Model.GRU4REC, Layout.PACKED_SEQUENCE)
    assert isinstance(batch, PackedSequenceBatch)
    assert isinstance(batch.values, dict)
    with HostSyncs() as of_torch:
        model.gru(batch.packed(model.table(batch.values["items"])))
    with HostSyncs() as ours:
        model(batch)
    assert ours.found == of_torch.found


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_loss_in_bfloat16_is_near_that_in_float32(layout: Layout) -> None:
    model, batch = small_model(Model.GRU4REC), batch_of(Model.GRU4REC, layout)
    _, expected, expected_gradients = step(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        _, loss, gradients = step(model, batch)
    torch.testing.assert_close(loss.mean, expected.mean, rtol=0.01, atol=0)
    whole, exact = (torch.cat([g[name].flatten() for name in gradients]) for g in (gradients, expected_gradients))
    assert torch.cosine_similarity(whole, exact, dim=0) > 0.999


# Dynamo looks at .grad of what goes from one graph to the next
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_compiled_around_its_network_it_is_the_same(layout: Layout) -> None:
    model, batch = small_model(Model.GRU4REC), batch_of(Model.GRU4REC, layout)
    torch._dynamo.reset()
    compiled = torch.compile(model.loss, backend="eager")
    torch.testing.assert_close(compiled(batch).total, model.loss(batch).total)


def test_its_entry_in_the_table() -> None:
    assert Gru4Rec.takes == LAYOUTS
    assert small_spec(Model.GRU4REC).sequences == ("items", "negatives")
