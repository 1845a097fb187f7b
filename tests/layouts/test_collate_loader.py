"""Plan -> sampler -> workers -> collate: the tensors of a real DataLoader are the planned ones, and nothing else.

Each event is ``sequence * 1000 + position``, so that a tensor says by itself which events of whom it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.strategies import STRATEGIES, Layout, Strategy
from labkit.errors import PolicyError
from labkit.layouts.batch import Batch
from labkit.layouts.collate import JaggedBatch, collate
from labkit.layouts.packed_rnn import PackedSequenceBatch
from labkit.layouts.padded import PaddedBatch
from labkit.layouts.segmented import SegmentedBatch
from labkit.layouts.sparse import SparseBatch

# two workers are a test of what crosses processes, not of speed: one core is enough
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

PADDING = -1
LENGTHS = np.random.default_rng(7).geometric(0.08, size=150) - 1  # 0 .. about 60
EDGES = (4, 12, 30, 90)
POLICIES = {
    "pad_max": BatchPolicy("pad_max", rows=16),
    "pad_max-drop_last": BatchPolicy("pad_max", rows=16, length_multiple=8, drop_last=True),
    "pad_recent": BatchPolicy("pad_recent", rows=16),
    "pad_recent-cap": BatchPolicy("pad_recent", rows=16, max_length=10),
    "pad_batch": BatchPolicy("pad_batch", rows=16, max_length=20, length_multiple=4),
    "bucket_rows": BatchPolicy("bucket_rows", rows=16, bucket_edges=EDGES),
    "bucket_rows-static": BatchPolicy("bucket_rows", rows=16, bucket_edges=EDGES, static_shapes=True),
    "bucket_rows-batch_max": BatchPolicy("bucket_rows", rows=16, bucket_edges=EDGES, pad_to="batch_max"),
    "bucket_budget": BatchPolicy("bucket_budget", token_budget=200, bucket_edges=EDGES),
    "bucket_budget-widths": BatchPolicy(
        "bucket_budget", token_budget=200, bucket_edges=EDGES, bucket_widths=(3, 9, 20, 40)
    ),
    "bucket_budget-cap": BatchPolicy(
        "bucket_budget", token_budget=200, bucket_edges=EDGES, max_length=25, row_multiple=4
    ),
    "bucket_budget-truncate": BatchPolicy("bucket_budget", token_budget=200, bucket_edges=(4, 12), overflow="truncate"),
    "bucket_budget-drop": BatchPolicy("bucket_budget", token_budget=200, bucket_edges=(4, 12), overflow="drop"),
    "bucket_budget-single_row": BatchPolicy(
        "bucket_budget", token_budget=64, bucket_edges=EDGES, oversize="single_row"
    ),
    "bucket_graph": BatchPolicy("bucket_graph", token_budget=200, bucket_edges=EDGES),
    "bucket_graph-multiple": BatchPolicy("bucket_graph", token_budget=400, bucket_edges=EDGES, row_multiple=4),
    "jagged": BatchPolicy("jagged", token_budget=200),
    "jagged-cap": BatchPolicy("jagged", token_budget=100, max_rows=9, max_length=20),
    "rnn_packed": BatchPolicy("rnn_packed", rows=16, max_length=20),
    "segmented": BatchPolicy("segmented", token_budget=200),
    "sparse": BatchPolicy("sparse", token_budget=200),
}


def histories(lengths: Iterable[int]) -> list[Any]:
    """One history a sequence; a plain list is a data set, and travels to spawned workers."""
    return [sequence * 1000 + np.arange(length) for sequence, length in enumerate(lengths)]


# --- the checker


def rows_of(batch: Batch, rows: int, width: int) -> list[list[int]]:
    """The events of every row, ghosts included, after a look at the shapes."""
    if isinstance(batch, PackedSequenceBatch):
        assert batch.lengths.shape == (rows,)
        assert isinstance(batch.values, torch.Tensor)
        return [part.tolist() for part in torch.split(batch.unpack(batch.values), batch.lengths.tolist())]
    if isinstance(batch, JaggedBatch | SegmentedBatch | SparseBatch):
        assert batch.offsets.shape == (rows + 1,)
        assert batch.offsets[0] == 0
        assert batch.values.shape == (batch.offsets[-1],)
        return [part.tolist() for part in torch.tensor_split(batch.values, batch.offsets[1:-1])]
    assert batch.values.shape == batch.valid.shape == (rows, width)
    assert batch.lengths.shape == (rows,)
    # real events from the left, padding after them
    assert torch.equal(batch.valid, torch.arange(width).expand(rows, width) < batch.lengths[:, None])
    assert torch.equal(batch.valid, batch.values != PADDING)
    return [row[valid].tolist() for row, valid in zip(batch.values, batch.valid, strict=True)]


def check_epoch(batches: Iterable[Any], plan: EpochPlan, lengths: np.ndarray[Any, Any]) -> None:
    """Shapes as planned; of each planned sequence its most recent events, as many as planned; ghosts empty."""
    seen: list[int] = []
    events = slots = count = 0
    for i, batch in enumerate(batches):
        indices = plan[i].tolist()
        rows = rows_of(batch, int(plan.rows[i]), int(plan.padded_lengths[i]))
        assert batch.rows == len(indices)
        for sequence, row in zip(indices, rows, strict=False):
            length = int(lengths[sequence])
            assert row == [sequence * 1000 + position for position in range(length - len(row), length)]
        assert rows[len(indices) :] == [[]] * (int(plan.rows[i]) - len(indices))
        seen += indices
        events += sum(map(len, rows))
        slots += batch.values.numel()
        count += 1
    assert count == len(plan)
    assert len(set(seen)) == len(seen) == lengths.size - plan.sequences_dropped
    assert events == plan.kept_events
    if isinstance(batch, PaddedBatch) or plan.policy.spec.layout is not Layout.PADDED:
        assert slots == plan.slots


def epoch(own: Callable[[list[Any]], Any], plan: EpochPlan, lengths: Iterable[int]) -> list[Any]:
    """The batches of a plan without a loader."""
    data = histories(lengths)
    return [own([data[j] for j in indices]) for indices in plan]


# --- through a DataLoader


def test_every_strategy_is_tried() -> None:
    # packs are tried in test_packed_loader.py
    assert {policy.strategy for policy in POLICIES.values()} == set(STRATEGIES) - {Strategy.PACKED}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_a_loader_gives_the_planned_tensors(policy: BatchPolicy, workers: int) -> None:
    sampler = BucketBatchSampler(LENGTHS, policy, seed=3)
    loader: DataLoader[Any] = DataLoader(
        histories(LENGTHS),  # type: ignore[arg-type]
        batch_sampler=sampler,
        collate_fn=collate(policy, histogram=LENGTHS, padding_value=PADDING),
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
    for number in range(2 if workers == 0 else 1):
        sampler.set_epoch(number)
        assert len(loader) == len(sampler.plan)
        check_epoch(loader, sampler.plan, LENGTHS)


def test_workers_may_be_spawned() -> None:
    policy = POLICIES["bucket_graph"]
    sampler = BucketBatchSampler(LENGTHS, policy)
    own = collate(policy, histogram=LENGTHS, padding_value=PADDING)
    loader: DataLoader[Any] = DataLoader(
        histories(LENGTHS),  # type: ignore[arg-type]
        batch_sampler=sampler,
        collate_fn=own,
        num_workers=1,
        multiprocessing_context="spawn",
    )
    assert sampler.plan.ghost_rows > 0
    check_epoch(loader, sampler.plan, LENGTHS)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_every_strategy_can_give_values_and_offsets(policy: BatchPolicy) -> None:
    plan = plan_epoch(LENGTHS, policy, seed=1)
    check_epoch(epoch(collate(policy, "jagged", histogram=LENGTHS), plan, LENGTHS), plan, LENGTHS)


DEPENDS_ON_LENGTHS = {
    "pad_max",
    "pad_max-drop_last",
    "pad_recent",
    "bucket_rows-static",
    "bucket_graph",
    "bucket_graph-multiple",
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_policy_alone_is_enough_unless_shapes_depend_on_the_lengths(name: str) -> None:
    policy = POLICIES[name]
    if name in DEPENDS_ON_LENGTHS:
        with pytest.raises(PolicyError, match="pass histogram="):
            collate(policy)
        return
    plan = plan_epoch(LENGTHS, policy, seed=1)
    own = collate(policy, padding_value=PADDING)
    check_epoch(epoch(own, plan, LENGTHS), plan, LENGTHS)


# --- any lengths, any policy


@st.composite
def policies(draw: st.DrawFn, longest: int) -> BatchPolicy:
    """A policy that may or may not fit lengths up to ``longest``."""
    edges = draw(st.sets(st.integers(1, longest + 2), min_size=1, max_size=4))
    edges = tuple(sorted(edges))
    static = draw(st.sampled_from([None, True, False]))
    strategy = draw(st.sampled_from(sorted(set(STRATEGIES) - {Strategy.PACKED})))
    widths = tuple(draw(st.integers(1, edge)) for edge in edges) if draw(st.booleans()) else None
    try:
        return BatchPolicy(
            strategy,
            rows=draw(st.integers(1, 6)),
            bucket_edges=edges,
            bucket_widths=widths,
            token_budget=draw(st.integers(1, 60)),
            max_rows=draw(st.integers(1, 6)),
            max_length=draw(st.none() | st.integers(1, longest + 2)),
            overflow=draw(st.sampled_from(["error", "truncate", "drop"])),
            oversize=draw(st.sampled_from(["error", "single_row"])),
            pad_to=draw(st.sampled_from(["edge", "batch_max"])),
            static_shapes=static,
            row_multiple=draw(st.integers(1, 3)),
            length_multiple=draw(st.integers(1, 5)),
            drop_last=draw(st.booleans()),
        )
    except PolicyError:
        assume(False)
        raise


@settings(max_examples=400)
@given(st.data())
def test_any_plan_comes_out_as_planned(data: st.DataObject) -> None:
    lengths = np.array(data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=30)))
    policy = data.draw(policies(20))
    seed = data.draw(st.integers(0, 3))
    own = attempt(lambda: collate(policy, histogram=lengths, padding_value=PADDING))
    plan = attempt(lambda: plan_epoch(lengths, policy, seed=seed))
    assert (plan is None) == (own is None)  # refused by both or by none
    assume(plan is not None and len(plan))
    own = collate(policy, data.draw(st.sampled_from([None, "jagged"])), histogram=lengths, padding_value=PADDING)
    check_epoch(epoch(own, plan, lengths), plan, lengths)


def attempt(make: Callable[[], Any]) -> Any:
    """What ``make`` gives, or None where the policy does not fit."""
    try:
        return make()
    except PolicyError:
        return None


# --- the checker can fail


def oldest_kept(own: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A wrong collate: the cut is made at the wrong end."""
    return lambda samples: own([np.concatenate([h[10:], h[:10]]) for h in samples])


def one_ghost_less(own: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A wrong collate: a ghost row is forgotten."""

    def wrong(samples: list[Any]) -> PaddedBatch:
        batch = own(samples)
        keep = len(batch.lengths) - (batch.rows < len(batch.lengths))
        return PaddedBatch(batch.values[:keep], batch.lengths[:keep], batch.valid[:keep], batch.rows)

    return wrong


def ghost_with_an_event(own: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A wrong collate: the last row repeats the first."""

    def wrong(samples: list[Any]) -> PaddedBatch:
        batch = own(samples)
        if batch.rows < len(batch.lengths):
            for part in batch[:3]:
                part[-1] = part[0]
        return batch

    return wrong


def one_event_less(own: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A wrong collate: the oldest kept event is lost, the rest moves up."""

    def wrong(samples: list[Any]) -> PaddedBatch:
        values, lengths, valid, rows = own(samples)
        values[0] = torch.cat([values[0, 1:], values.new_tensor([PADDING])])
        lengths[0] = max(0, lengths[0] - 1)
        valid[0] = values[0] != PADDING
        return PaddedBatch(values, lengths, valid, rows)

    return wrong


@pytest.mark.parametrize("wrong", [oldest_kept, one_ghost_less, ghost_with_an_event, one_event_less])
def test_a_wrong_collate_is_caught(wrong: Callable[..., Any]) -> None:
    policy = replace(POLICIES["bucket_graph"], max_length=20)
    plan = plan_epoch(LENGTHS, policy)
    own = collate(policy, histogram=LENGTHS, padding_value=PADDING)
    check_epoch(epoch(own, plan, LENGTHS), plan, LENGTHS)
    with pytest.raises(AssertionError):
        check_epoch(epoch(wrong(own), plan, LENGTHS), plan, LENGTHS)


def test_a_missing_batch_is_caught() -> None:
    policy = POLICIES["bucket_rows"]
    plan = plan_epoch(LENGTHS, policy)
    batches = epoch(collate(policy, padding_value=PADDING), plan, LENGTHS)
    with pytest.raises(AssertionError):
        check_epoch(batches[:-1], plan, LENGTHS)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_loader_goes_on_where_the_loop_was_not_where_the_workers_were(workers: int) -> None:
    # DataLoader calls iter() twice for one pass when it has workers: neither call may use up the resume point
    policy = POLICIES["bucket_budget"]
    planned = [batch.tolist() for batch in BucketBatchSampler(LENGTHS, policy, seed=3).plan]
    first = BucketBatchSampler(LENGTHS, policy, seed=3)
    state = first.state_dict(batches_consumed=2)
    resumed = BucketBatchSampler(LENGTHS, policy, seed=3)
    resumed.load_state_dict(state)
    loader: DataLoader[Any] = DataLoader(
        range(LENGTHS.size),  # type: ignore[arg-type]
        batch_sampler=resumed,
        collate_fn=list,
        num_workers=workers,
    )
    assert len(loader) == len(planned) - 2
    assert list(loader) == planned[2:]
    resumed.set_epoch(1)
    assert list(loader) == [batch.tolist() for batch in resumed.plan]
