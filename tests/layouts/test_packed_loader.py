"""Packs through a real DataLoader: the tensors are the planned ones, from workers too, forked or spawned.

Each event is ``sequence * 1000 + position``, so that a tensor says by itself which events of whom it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from labkit.batching.epoch_plan import EpochPlan
from labkit.batching.pieces import batch_indices
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.layouts.collate import collate
from labkit.layouts.packed import PackedBatch, PackedDataset
from tests.batching.draws import policies

# two workers are a test of what crosses processes, not of speed: one core is enough
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

PADDING = -1
LENGTHS = np.random.default_rng(7).geometric(0.08, size=150) - 1  # 0 .. about 60
POLICIES = {
    "longest": BatchPolicy("packed", rows=4),
    "cap": BatchPolicy("packed", rows=4, max_length=20, length_multiple=8),
    "truncate": BatchPolicy("packed", rows=4, capacity=16, overflow="truncate"),
    "split": BatchPolicy("packed", rows=4, capacity=16, overflow="split"),
    "split-cap": BatchPolicy("packed", rows=4, capacity=16, max_length=40, overflow="split", drop_last=True),
    "drop": BatchPolicy("packed", rows=4, capacity=16, overflow="drop"),
    "most": BatchPolicy("packed", rows=4, max_sequences_per_pack=3),
}


def histories(lengths: Iterable[int]) -> list[Any]:
    return [sequence * 1000 + np.arange(length) for sequence, length in enumerate(lengths)]


def check_epoch(batches: Iterable[Any], plan: EpochPlan) -> None:
    """Every piece of the plan where it should be, positions from 0, segments from 1, padding elsewhere."""
    assert plan.pack_offsets is not None
    assert plan.event_start is not None
    assert plan.event_stop is not None
    found = []
    for i, batch in enumerate(batches):
        assert isinstance(batch, PackedBatch)
        assert isinstance(batch.values, torch.Tensor)
        shape = (int(plan.rows[i]), int(plan.padded_lengths[i]))
        assert batch.values.shape == batch.positions.shape == batch.segment_ids.shape == shape
        assert batch.rows == shape[0]
        assert torch.equal(batch.segment_ids == 0, batch.values == PADDING)
        assert batch.values.numel() == plan.batch_slots[i]
        for row in range(batch.rows):
            low, high = batch.piece_offsets[row : row + 2].tolist()
            pack = []
            for segment in range(1, high - low + 1):
                own = batch.segment_ids[row] == segment
                assert own.sum() == batch.lengths[low + segment - 1]
                assert batch.positions[row][own].tolist() == list(range(int(own.sum())))
                pack.append(batch.values[row][own].tolist())
            assert batch.positions[row][batch.segment_ids[row] == 0].sum() == 0
            found.append(pack)
    spans = zip(plan.order.tolist(), plan.event_start.tolist(), plan.event_stop.tolist(), strict=True)
    pieces = [[index * 1000 + event for event in range(start, stop)] for index, start, stop in spans]
    assert found == [pieces[low:high] for low, high in pairwise(plan.pack_offsets.tolist())]


def loader(sampler: BucketBatchSampler, workers: int, context: str | None) -> DataLoader[Any]:
    return DataLoader(
        PackedDataset(histories(LENGTHS)),  # type: ignore[arg-type]
        batch_sampler=sampler,
        collate_fn=collate(sampler.policy, histogram=LENGTHS, padding_value=PADDING),
        num_workers=workers,
        multiprocessing_context=context,
    )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_a_loader_gives_the_planned_packs(policy: BatchPolicy, workers: int) -> None:
    sampler = BucketBatchSampler(LENGTHS, policy, seed=3)
    batches = loader(sampler, workers, "fork" if workers else None)
    for number in range(1 if workers else 2):
        sampler.set_epoch(number)
        assert len(batches) == len(sampler.plan)
        check_epoch(batches, sampler.plan)


def test_workers_may_be_spawned() -> None:
    sampler = BucketBatchSampler(LENGTHS, POLICIES["split"])
    check_epoch(loader(sampler, 1, "spawn"), sampler.plan)


def test_the_ranks_together_give_all_packs() -> None:
    policy = POLICIES["split"]
    samplers = [BucketBatchSampler(LENGTHS, policy, rank=rank, world_size=2) for rank in range(2)]
    for sampler in samplers:
        check_epoch(loader(sampler, 0, None), sampler.plan)
    events = sum(sampler.plan.kept_events - sampler.plan.events_repeated for sampler in samplers)
    assert events == LENGTHS.sum()


@settings(max_examples=150)
@given(st.data(), st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_any_plan_comes_out_as_planned(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths, ("packed",)))
    plan = plan_epoch(lengths, policy, seed=data.draw(st.integers(0, 3)))
    own, samples = collate(policy, histogram=lengths, padding_value=PADDING), PackedDataset(histories(lengths))
    check_epoch((own(samples.__getitems__(batch_indices(plan, i))) for i in range(len(plan))), plan)  # type: ignore[arg-type]


# --- the checker can fail


def next_user(batch: PackedBatch) -> PackedBatch:
    """A wrong collate: all of a row are one user."""
    return batch._replace(segment_ids=batch.segment_ids.clamp(max=1))


def running_positions(batch: PackedBatch) -> PackedBatch:
    """A wrong collate: positions go on from one user to the next."""
    return batch._replace(positions=torch.arange(batch.positions.shape[1]).expand_as(batch.positions))


def one_event_moved(batch: PackedBatch) -> PackedBatch:
    """A wrong collate: the events of a row are shifted by one."""
    assert isinstance(batch.values, torch.Tensor)
    return batch._replace(values=batch.values.roll(1, dims=1))


@pytest.mark.parametrize("wrong", [next_user, running_positions, one_event_moved])
def test_a_wrong_collate_is_caught(wrong: Any) -> None:
    policy = replace(POLICIES["truncate"], rows=2)
    plan = plan_epoch(LENGTHS, policy)
    own, samples = collate(policy, padding_value=PADDING), PackedDataset(histories(LENGTHS))
    batches = [own(samples.__getitems__(batch_indices(plan, i))) for i in range(len(plan))]  # type: ignore[arg-type]
    check_epoch(batches, plan)
    with pytest.raises(AssertionError):
        check_epoch([wrong(batch) for batch in batches], plan)
