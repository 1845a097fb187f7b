"""The table of models: what it promises is what the classes do, and what does not go together is named."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from labkit.batching.strategies import STRATEGIES, Layout, Strategy
from labkit.errors import PolicyError, ShapeError
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.models.base import Loss
from labkit.models.registry import ITEMS, MODELS, WIDTH, Model, build, check_layout, model_spec
from tests.models.agreement import batch_of, small_model


def test_a_module_of_another_kind_is_named_by_its_class_alone() -> None:
    with pytest.raises(PolicyError, match=r"^model must be one of din, .*, or a model of the table: got a Linear\.$"):
        check_layout(torch.nn.Linear(2, 2), "jagged")  # type: ignore[arg-type]


@pytest.mark.parametrize("model", list(Model))
def test_the_table_says_what_the_class_takes(model: Model) -> None:
    spec = model_spec(str(model))
    assert spec.load().takes == spec.takes
    assert Layout.PADDED in spec.takes
    assert spec.sequences[0] == "items"


def test_the_table_loads_no_torch() -> None:
    code = "import sys, labkit.models.registry; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_default_din_is_the_one_of_the_lab() -> None:
    din = build("din")
    assert tuple(din.get_parameter("table.weight").shape) == (ITEMS, WIDTH) == (100_000, 32)
    # attention 4 * 32 -> 80 -> 40 -> 1, head 2 * 32 -> 80 -> 40 -> 1, a PReLU after each hidden layer
    attention = 128 * 80 + 80 + 80 * 40 + 40 + 40 + 1 + 2
    head = 64 * 80 + 80 + 80 * 40 + 40 + 40 + 1 + 2
    assert sum(p.numel() for p in din.parameters()) == 3_200_000 + attention + head


@pytest.mark.parametrize(("model", "strategy"), [(m, s) for m in Model for s in Strategy])
def test_a_model_goes_with_a_strategy_if_it_takes_its_layout(model: Model, strategy: Strategy) -> None:
    layout = STRATEGIES[strategy].layout
    if layout in MODELS[model].takes:
        assert check_layout(model, strategy) is layout
    else:
        with pytest.raises(
            PolicyError, match=f"model {model} does not take the {layout} layout of strategy {strategy}"
        ):
            check_layout(model, strategy)


def test_the_message_names_what_goes_together() -> None:
    message = (
        "model din does not take the packed_sequence layout of strategy rnn_packed: use one of pad_max, pad_recent, "
        "pad_batch, bucket_rows, bucket_budget, bucket_graph, packed, jagged, segmented, sparse."
    )
    with pytest.raises(PolicyError, match=re.escape(message)):
        check_layout("din", "rnn_packed")
    with pytest.raises(PolicyError, match="model 'dlrm' does not exist: use one of din, sasrec, gru4rec, pooled, ctr"):
        model_spec("dlrm")


def test_a_batch_of_another_layout_is_refused_by_name() -> None:
    batch = batch_of(Model.GRU4REC, Layout.PACKED_SEQUENCE)
    message = (
        "Din does not take a PackedSequenceBatch: give it a PaddedBatch or JaggedBatch or SegmentedBatch or "
        "PackedBatch or SparseBatch"
    )
    with pytest.raises(PolicyError, match=message):
        small_model(Model.DIN)(batch)


def test_a_missing_field_is_named() -> None:
    din = small_model(Model.DIN)
    named = JaggedBatch({"items": torch.tensor([1])}, torch.tensor([0, 1]), 1)
    with pytest.raises(ShapeError, match="the batch has no field 'target': got items"):
        din(named)
    with pytest.raises(ShapeError, match="the batch has no field 'target': got one field without a name"):
        din(JaggedBatch(torch.tensor([1]), torch.tensor([0, 1]), 1))


# --- what a loss counts


def test_a_mean_is_over_targets_not_over_batches() -> None:
    # 2.0 over 1 target and 1.0 over 9: (2 + 9) / 10 = 1.1, where the mean of means is 1.5
    one = Loss(torch.tensor(2.0), torch.tensor(1))
    other = Loss(torch.tensor(9.0), torch.tensor(9))
    both = Loss(one.total + other.total, one.targets + other.targets)
    assert both.mean.item() == pytest.approx(1.1)
    assert Loss(torch.tensor(0.0), torch.tensor(0)).mean == 0


@pytest.mark.parametrize("model", [Model.DIN, Model.POOLED, Model.CTR])
def test_real_rows_may_be_counted_on_the_device(model: Model) -> None:
    # a replayed CUDA graph has one number of rows in its memory, and real ones that differ
    module, batch = small_model(model), batch_of(model, Layout.PADDED, (3, 0, 2), ghosts=2)
    expected = module.loss(batch)
    found = module.loss(batch._replace(rows=torch.tensor(3)))
    assert (found.total, found.targets) == expected
    fewer = module.loss(batch._replace(rows=torch.tensor(1)))
    assert fewer.targets * 3 == expected.targets
