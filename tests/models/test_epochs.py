"""An epoch has the same loss and the same targets under every strategy, whatever it does to the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.layouts.collate import collate
from labkit.layouts.packed import PackedDataset
from labkit.models.registry import Model, check_layout, model_spec
from tests.models.agreement import IDS, small_model

RANDOM = np.random.default_rng(0)
LENGTHS = np.append(np.minimum(RANDOM.zipf(1.6, 120), 40), [0, 0, 1])
USERS = [{name: RANDOM.integers(IDS, size=n) for name in ("items", "negatives")} for n in LENGTHS]
POLICIES = {
    "pad_max": BatchPolicy("pad_max", rows=32),
    "pad_batch": BatchPolicy("pad_batch", rows=32),
    "bucket_budget": BatchPolicy("bucket_budget", token_budget=300, bucket_edges=(2, 8, 40)),
    "bucket_graph": BatchPolicy("bucket_graph", token_budget=300, bucket_edges=(2, 8, 40)),
    "packed": BatchPolicy("packed", capacity=40, rows=4),
    "rnn_packed": BatchPolicy("rnn_packed", rows=32),
    "jagged": BatchPolicy("jagged", token_budget=300),
}
TAKEN = {
    Model.SASREC: ("pad_batch", "bucket_budget", "bucket_graph", "packed", "jagged"),
    Model.GRU4REC: ("pad_batch", "bucket_budget", "bucket_graph", "rnn_packed"),
}


def epoch(model: Model, policy: BatchPolicy) -> tuple[float, int]:
    """Sum of the losses of all batches, and of their targets."""
    module, layout = small_model(model), check_layout(model, policy.strategy)
    data: Any = PackedDataset(USERS) if policy.strategy == "packed" else USERS
    own: Any = collate(policy, layout, histogram=LENGTHS, sequences=model_spec(model).sequences)
    total, targets = 0.0, 0
    with torch.no_grad():
        for indices in BucketBatchSampler(LENGTHS, policy, seed=0):
            loss = module.loss(own([data[i] for i in indices]))
            total, targets = total + loss.total.item(), targets + int(loss.targets)
    return total, targets


@pytest.mark.parametrize(
    ("model", "strategy"), [(model, key) for model, keys in TAKEN.items() for key in keys], ids=str
)
def test_an_epoch_has_the_loss_of_one_padded_to_the_longest(model: Model, strategy: str) -> None:
    total, targets = epoch(model, POLICIES["pad_max"])
    found = epoch(model, POLICIES[strategy])
    # every event that is not the first of its history is a target
    assert found[1] == targets == int(np.maximum(LENGTHS - 1, 0).sum())
    assert found[0] == pytest.approx(total, rel=1e-5)
