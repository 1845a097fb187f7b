"""The time of an epoch from a part of it: exact where shapes decide, an error that covers, and none from too little."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from labkit.batching.epoch_plan import EpochPlan
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.experiments.epoch_estimate import epoch_estimate, kinds_of, timed_order

LENGTHS = np.minimum(np.round(np.exp(np.random.default_rng(0).normal(3, 1.1, 2500))).astype(np.int64) + 1, 512)
EDGES = (8, 16, 32, 64, 128, 256, 512)
BUCKETS = BatchPolicy("bucket_budget", bucket_edges=EDGES, token_budget=2048)
GROUPED = BatchPolicy("bucket_budget", bucket_edges=EDGES, token_budget=2048, batch_order="grouped")
OTHERS = [
    BatchPolicy("pad_batch", rows=32),
    BatchPolicy("jagged", token_budget=2048),
    BatchPolicy("packed", rows=4, capacity=512),
]


def attention(plan: EpochPlan) -> NDArray[np.float64]:
    """(B,) made-up seconds: a part by slots and one by the squares of widths, as in a step of attention."""
    return np.asarray(1e-4 + plan.batch_slots * (1 + plan.padded_lengths / 50) * 1e-6)


@pytest.mark.parametrize("policy", [BUCKETS, GROUPED], ids=["shuffled", "grouped"])
def test_where_the_shape_decides_a_part_gives_the_whole_and_real_events_do_not(policy: BatchPolicy) -> None:
    plan = plan_epoch(LENGTHS, policy, seed=1)
    costs = attention(plan)
    few = timed_order(plan, seed=0)[:14]
    found = epoch_estimate(plan, few, costs[few], 1.5 * costs[few].sum())  # a third of the wall time waits for data
    assert found.seconds == pytest.approx(1.5 * costs.sum(), rel=0.05)
    assert found.seconds is not None
    assert found.error is not None
    assert abs(found.seconds - 1.5 * costs.sum()) <= 2 * found.error
    assert str(found.reason).startswith(
        f"extrapolated from 14 of {len(plan)} batches, 6 of 14 shapes: the mean step of each"
    )
    first = np.arange(14)  # what the plan begins with, by real events
    events = np.add.reduceat(LENGTHS[plan.order], plan.batch_offsets[:-1])
    by_events = costs[first].sum() / events[first].sum() * events.sum()
    assert abs(by_events / costs.sum() - 1) > 0.1


@pytest.mark.parametrize("policy", [BUCKETS, *OTHERS], ids=lambda policy: str(policy.strategy))
def test_the_error_is_that_of_many_estimates_which_are_not_biased(policy: BatchPolicy) -> None:
    plan = plan_epoch(LENGTHS, policy, seed=1)
    costs = attention(plan) * np.random.default_rng(2).lognormal(0, 0.2, len(plan))
    n = len(plan) // 2
    estimates, errors = [], []
    for seed in range(200):
        timed = timed_order(plan, seed)[:n]
        found = epoch_estimate(plan, timed, costs[timed], costs[timed].sum())
        assert found.seconds is not None
        assert found.error is not None
        estimates.append(found.seconds / costs.sum())
        errors.append(found.error / costs.sum())
    assert np.mean(estimates) == pytest.approx(1, abs=0.02)
    assert 0.6 < np.mean(errors) / np.std(estimates) < 1.7


@pytest.mark.parametrize(
    "policy", [BUCKETS, GROUPED, *OTHERS], ids=lambda policy: f"{policy.strategy}, {policy.batch_order}"
)
def test_the_order_is_of_all_batches_and_every_beginning_is_in_proportion(policy: BatchPolicy) -> None:
    plan = plan_epoch(LENGTHS, policy)
    order, kinds = timed_order(plan, seed=3), kinds_of(plan)
    assert sorted(order.tolist()) == list(range(len(plan)))
    counts = np.bincount(kinds)
    for n in range(counts.size, len(plan) + 1):
        seen = np.bincount(kinds[order[:n]], minlength=counts.size)
        assert np.abs(seen - counts * n / len(plan)).max() <= counts.size


def test_too_few_shapes_give_no_estimate() -> None:
    plan = plan_epoch(LENGTHS, BUCKETS)
    two = timed_order(plan, seed=0)[:2]
    found = epoch_estimate(plan, two, np.ones(2), 2.0)
    assert (found.seconds, found.error) == (None, None)
    assert str(found.reason).startswith(f"only 2 of {len(plan)} batches, 2 of ")
    assert str(found.reason).endswith(" of the slots: give more seconds, or measure a whole epoch")


def test_a_shape_that_was_not_seen_counts_by_its_slots_with_all_of_it_as_error() -> None:
    # 10 batches of 2 x 8 = 160 slots, one of 2 x 4 = 8
    plan = plan_epoch([8] * 20 + [4] * 2, BatchPolicy("bucket_rows", rows=2, bucket_edges=(4, 8), shuffle=False))
    wide = np.flatnonzero(plan.padded_lengths == 8)
    found = epoch_estimate(plan, wide, np.full(10, 2.0), 20.0)
    assert (found.seconds, found.error) == (pytest.approx(20 + 1), pytest.approx(1))


def test_one_step_has_no_error_and_a_whole_epoch_no_doubt() -> None:
    plan = plan_epoch([8] * 20, BatchPolicy("pad_max", rows=2))
    one = epoch_estimate(plan, np.array([3]), np.array([2.0]), 3.0)
    assert (one.seconds, one.error) == (pytest.approx(30.0), None)
    assert one.error_reason == "no shape was timed twice: nothing says how much its steps differ"
    whole = epoch_estimate(plan, np.arange(10), np.full(10, 2.0), 21.0)
    assert (whole.seconds, whole.error, whole.reason) == (21.0, None, None)


def test_the_error_by_hand() -> None:
    # 10 batches of one shape; steps 1 and 3: mean 2, variance 2; 10 * 8 * 2 / 2 = 80
    plan = plan_epoch([8] * 20, BatchPolicy("pad_max", rows=2))
    found = epoch_estimate(plan, np.array([0, 5]), np.array([1.0, 3.0]), 4.0)
    assert (found.seconds, found.error) == (pytest.approx(20), pytest.approx(80**0.5))
