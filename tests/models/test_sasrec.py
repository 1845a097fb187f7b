"""SASRec: the same in every layout, the loss of the paper, positions, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from labkit.batching.strategies import Layout
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.batch import Batch
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.masks import padded_on
from labkit.layouts.moving import to_device
from labkit.layouts.packed import PackedBatch
from labkit.layouts.padded import PaddedBatch
from labkit.models.registry import MODELS, Model
from labkit.models.sasrec import SasRec
from tests.models.agreement import IDS, RAGGED, batch_of, by_rows, small_model, small_spec, step
from tests.models.host_syncs import HostSyncs

LAYOUTS = MODELS[Model.SASREC].takes
CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}


def sasrec(**sizes: Any) -> SasRec:
    torch.manual_seed(0)
    return SasRec(items=IDS, **sizes)


# --- the same in every layout


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("lengths", [RAGGED, (0, 0, 0), (1,), (1, 1, 1, 1), (33, 32, 31)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS[1:], ids=str)
def test_every_layout_gives_what_the_padded_one_gives(layout: Layout, lengths: Sequence[int], training: bool) -> None:
    # four heads for some, one for others
    model = sasrec(heads=4 if lengths == RAGGED else 1).train(training)
    expected, expected_loss, expected_gradients = step(model, batch_of(Model.SASREC, Layout.PADDED, lengths))
    output, loss, gradients = step(model, batch_of(Model.SASREC, layout, lengths))
    torch.testing.assert_close(by_rows(output, layout, lengths), expected, **CLOSE)
    assert_same(loss, gradients, expected_loss, expected_gradients)


def assert_same(loss: Any, gradients: dict[str, Tensor], expected_loss: Any, expected: dict[str, Tensor]) -> None:
    torch.testing.assert_close(loss.total, expected_loss.total, **CLOSE)
    assert loss.targets == expected_loss.targets
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], msg=name, **CLOSE)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("lengths", [RAGGED, (0, 0, 0), (4, 4), (2, 4, 0)], ids=str)
def test_padding_on_the_left_gives_what_padding_on_the_right_gives(lengths: Sequence[int], training: bool) -> None:
    right, left = sasrec().train(training), sasrec(padding="left").train(training)
    batch = batch_of(Model.SASREC, Layout.PADDED, lengths, ghosts=1, wider=3)
    assert isinstance(batch, PaddedBatch)
    expected, expected_loss, expected_gradients = step(right, batch)
    output, loss, gradients = step(left, padded_on(batch, "left"))
    torch.testing.assert_close(output, expected, **CLOSE)
    assert_same(loss, gradients, expected_loss, expected_gradients)
    events = right.states(batch)[batch.valid]
    torch.testing.assert_close(left.states(padded_on(batch, "left"))[padded_on(batch, "left").valid], events, **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_ghost_rows_and_spare_width_change_nothing(layout: Layout) -> None:
    model = sasrec()
    ghosts = 0 if layout is Layout.PACKED_ROWS else 3
    expected, expected_loss, expected_gradients = step(model, batch_of(Model.SASREC, layout))
    output, loss, gradients = step(model, batch_of(Model.SASREC, layout, ghosts=ghosts, wider=5))
    rows = by_rows(expected, layout, RAGGED)
    torch.testing.assert_close(by_rows(output, layout, RAGGED, wider=5), rows, **CLOSE)
    assert_same(loss, gradients, expected_loss, expected_gradients)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_lies_in_padding_does_not_matter(layout: Layout) -> None:
    model, batch = sasrec(), batch_of(Model.SASREC, layout, wider=5)
    expected, expected_loss, expected_gradients = step(model, batch)
    assert isinstance(batch.values, dict)
    for field in batch.values.values():
        if isinstance(batch, PaddedBatch):
            field[~batch.valid] = 7
        elif isinstance(batch, PackedBatch):
            field[batch.segment_ids == 0] = 7
    output, loss, gradients = step(model, batch)
    assert torch.equal(output, expected)
    assert_same(loss, gradients, expected_loss, expected_gradients)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_user_without_history_has_exactly_zero_and_finite_gradients(layout: Layout, training: bool) -> None:
    # C18
    model = sasrec().train(training)
    output, _, gradients = step(model, batch_of(Model.SASREC, layout, (0, 3, 0)))
    rows = by_rows(output, layout, (0, 3, 0))
    assert rows[[0, 2]].eq(0).all()
    assert rows[1].ne(0).all()
    assert all(gradient.isfinite().all() for gradient in gradients.values())


# --- the loss


def test_the_loss_is_that_of_the_paper_over_real_targets_alone() -> None:
    # histories of 3, 1 and 0 events have 2 + 0 + 0 targets
    model, batch = sasrec(), batch_of(Model.SASREC, Layout.PADDED, (3, 1, 0), ghosts=1, wider=2)
    assert isinstance(batch.values, dict)
    items, negatives = batch.values["items"], batch.values["negatives"]
    states = model.states(batch)
    total = torch.tensor(0.0)
    for t in range(2):
        total -= logsigmoid(states[0, t] @ model.table.weight[items[0, t + 1]])
        total -= torch.log(1 - torch.sigmoid(states[0, t] @ model.table.weight[negatives[0, t + 1]]))
    loss = model.loss(batch)
    assert loss.targets == 2
    torch.testing.assert_close(loss.total, total, **CLOSE)
    torch.testing.assert_close(loss.mean, total / 2, **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_losses_of_parts_add_up_to_that_of_the_whole(layout: Layout) -> None:
    # C31: the mean of batch means weighs a user with one target as much as one with nine
    model = sasrec()
    whole = model.loss(batch_of(Model.SASREC, layout, (2, 10)))
    assert whole.targets == 1 + 9
    losses = [model.loss(one) for one in alone(batch_of(Model.SASREC, Layout.PADDED, (2, 10)))]
    torch.testing.assert_close(whole.total, losses[0].total + losses[1].total, **CLOSE)
    assert not torch.isclose(whole.mean, (losses[0].mean + losses[1].mean) / 2)


def alone(batch: Batch) -> list[PaddedBatch]:
    """Each row as a batch of its own."""
    assert isinstance(batch, PaddedBatch)
    assert isinstance(batch.values, dict)
    rows = range(batch.rows)
    fields = [{name: field[b : b + 1] for name, field in batch.values.items()} for b in rows]
    return [PaddedBatch(fields[b], batch.lengths[b : b + 1], batch.valid[b : b + 1], 1) for b in rows]


def test_scores_are_products_with_all_items() -> None:
    model, batch = sasrec(), batch_of(Model.SASREC, Layout.JAGGED, (3, 0))
    states = model(batch)
    scores = model.scores(states)
    assert scores.shape == (2, IDS)
    torch.testing.assert_close(scores[0, 7], states[0] @ model.table.weight[7], **CLOSE)
    assert scores[1].eq(0).all()


def test_it_learns_a_cycle_of_items() -> None:
    # item i is always followed by i + 1, and never by the sampled i + 3
    torch.manual_seed(0)
    model = SasRec(items=8, width=16)
    items = (torch.arange(8)[:, None] + torch.arange(6)) % 8
    lengths = torch.full((8,), 6)
    batch = PaddedBatch({"items": items, "negatives": (items + 2) % 8}, lengths, torch.ones(8, 6, dtype=torch.bool), 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = model.loss(batch).mean.item()
    for _ in range(40):
        optimizer.zero_grad()
        model.loss(batch).mean.backward()
        optimizer.step()
    assert model.loss(batch).mean.item() < 0.1 * first


def test_dropout_is_off_by_default_and_only_on_in_training() -> None:
    batch = batch_of(Model.SASREC, Layout.PADDED)
    assert torch.equal(sasrec().train()(batch), sasrec().eval()(batch))
    model = sasrec(dropout=0.5)
    assert torch.equal(model.eval()(batch), sasrec().eval()(batch))
    assert not torch.equal(model.train()(batch), model.train()(batch))


# --- positions, sizes and what is refused


def test_the_order_of_the_history_matters() -> None:
    # one block: without positions its last event sees a set (a second would see what earlier events saw)
    model, batch = sasrec(blocks=1), batch_of(Model.SASREC, Layout.PADDED, (3,))
    assert isinstance(batch.values, dict)
    swapped = batch._replace(values=batch.values | {"items": batch.values["items"][:, [1, 0, 2]]})
    assert not torch.allclose(model(batch), model(swapped))
    with torch.no_grad():
        model.positions.weight.zero_()
    torch.testing.assert_close(model(batch), model(swapped), **CLOSE)


@pytest.mark.parametrize(
    ("layout", "what"),
    [(Layout.PADDED, "width"), (Layout.JAGGED, "longest row"), (Layout.PACKED_ROWS, "width of the packs")],
    ids=str,
)
def test_histories_longer_than_its_positions(layout: Layout, what: str) -> None:
    model = sasrec(max_positions=12)
    model(batch_of(Model.SASREC, layout, (12, 3)))
    message = (
        rf"^{what} 13 is above max_positions 12 of the model: build it with max_positions=13, or cut histories with "
        r"max_length=12\.$"
    )
    batch = batch_of(Model.SASREC, layout, (13, 3))
    with pytest.raises(ShapeError, match=message):
        model(batch)
    with pytest.raises(ShapeError, match=message), HostSyncs() as syncs:
        model.loss(batch)
    assert syncs.found == []
    with pytest.raises(ShapeError, match=message):
        model.states(to_device(batch, "meta"))


def test_a_jagged_batch_on_a_device_needs_its_longest_row() -> None:
    batch = batch_of(Model.SASREC, Layout.JAGGED, (3, 5))
    assert isinstance(batch, JaggedBatch)
    model = sasrec()
    assert torch.equal(model(batch), model(batch._replace(longest=None)))  # counted on the CPU
    message = r"^the longest row of a jagged batch on meta is not known: set JaggedBatch\.longest before the batch"
    with pytest.raises(ShapeError, match=message):
        model.to("meta")(to_device(batch._replace(longest=None), "meta"))


def test_bad_sizes_and_layouts() -> None:
    with pytest.raises(PolicyError, match=r"^heads must divide the width: got heads=5, width=32\. Use a divisor"):
        sasrec(heads=5)
    with pytest.raises(PolicyError, match=r"^padding 'both' does not exist: use one of right, left\.$"):
        sasrec(padding="both")
    batch = batch_of(Model.GRU4REC, Layout.PACKED_SEQUENCE)
    message = r"^SasRec does not take a PackedSequenceBatch: give it a PaddedBatch or JaggedBatch or PackedBatch\.$"
    for call in (sasrec(), sasrec().loss, sasrec().states):
        with pytest.raises(PolicyError, match=message):
            call(batch)
    with pytest.raises(ShapeError, match=r"^the batch has no field 'negatives': got items\. "):
        sasrec().loss(PaddedBatch({"items": torch.zeros(1, 1).long()}, torch.ones(1), torch.ones(1, 1).bool(), 1))


# --- on the path of a step


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_step_waits_for_nothing_and_runs_on_meta(layout: Layout) -> None:
    model, batch = small_model(Model.SASREC), batch_of(Model.SASREC, layout)
    with HostSyncs() as syncs:
        expected, _, gradients = step(model, batch)
    assert syncs.found == []
    with HostSyncs() as syncs:
        output, loss, on_meta = step(small_model(Model.SASREC).to("meta"), to_device(batch, "meta"))
    assert syncs.found == []
    assert (output.is_meta, output.shape, loss.total.shape) == (True, expected.shape, ())
    assert on_meta.keys() == gradients.keys() == dict(model.named_parameters()).keys()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_loss_in_bfloat16_is_near_that_in_float32(layout: Layout) -> None:
    model, batch = small_model(Model.SASREC), batch_of(Model.SASREC, layout)
    _, expected, expected_gradients = step(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        _, loss, gradients = step(model, batch)
    # bfloat16 has 8 bits: 2**-8 = 0.004
    torch.testing.assert_close(loss.mean, expected.mean, rtol=0.01, atol=0)
    whole, exact = (torch.cat([g[name].flatten() for name in gradients]) for g in (gradients, expected_gradients))
    assert torch.cosine_similarity(whole, exact, dim=0) > 0.999


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_loss_is_one_graph_for_the_compiler(layout: Layout) -> None:
    model, batch = small_model(Model.SASREC), batch_of(Model.SASREC, layout)
    torch._dynamo.reset()
    compiled = torch.compile(model.loss, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch).total, model.loss(batch).total)


def test_its_entry_in_the_table() -> None:
    assert SasRec.takes == LAYOUTS
    assert small_spec(Model.SASREC).sequences == ("items", "negatives")
