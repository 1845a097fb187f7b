"""Representatives: one batch of each width, few of many, and sums over the epoch by hand."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.experiments.representatives import Representatives


def test_every_width_of_a_few_is_looked_at() -> None:
    # widths 2 (3 rows, 2 a batch: 2 batches) and 8 (2 rows: 1 batch of 16 // 8)
    plan = plan_epoch([1, 2, 2, 8, 5], BatchPolicy("bucket_rows", rows=2, bucket_edges=(2, 8), shuffle=False))
    chosen = Representatives.of_plan(plan)
    assert (chosen.widths, chosen.complete) == ((2, 8), True)
    assert [int(plan.padded_lengths[i]) for i in chosen.batches] == [2, 8]
    assert chosen.epoch_sum([10, 100]) == 2 * 10 + 1 * 100
    assert plan.batch_slots[chosen.largest] == 16
    assert chosen.note == "from 2 batches, one of each width"


def test_of_many_widths_a_few_stand_for_all() -> None:
    lengths = np.arange(1, 101)
    plan = plan_epoch(lengths, BatchPolicy("pad_batch", rows=1))
    chosen = Representatives.of_plan(plan)
    assert (chosen.widths, chosen.complete) == ((1, 26, 51, 75, 100), False)
    # what grows linearly with the width is summed exactly: 3 + 2 * width over 1 .. 100
    assert chosen.epoch_sum([3 + 2 * w for w in chosen.widths]) == pytest.approx(300 + 2 * 5050)
    assert plan.padded_lengths[chosen.largest] == 100


def test_the_largest_batch_has_the_most_slots_not_the_greatest_width() -> None:
    plan = plan_epoch([4] * 10 + [30], BatchPolicy("bucket_budget", token_budget=40, bucket_edges=(4, 30)))
    assert plan.batch_slots[Representatives.of_plan(plan).largest] == 40


def test_a_batch_that_was_not_filled_stands_for_no_width() -> None:
    # a bucket of 9 rows, 2 a batch: the last has 1, and is the first to come in two plans of five
    lengths = [4] * 9 + [8] * 9
    for seed in range(10):
        plan = plan_epoch(lengths, BatchPolicy("bucket_rows", rows=2, bucket_edges=(4, 8)), seed=seed)
        assert [int(plan.rows[i]) for i in Representatives.of_plan(plan).batches] == [2, 2]


def test_of_a_whole_batch_and_a_part_of_one_it_is_the_whole() -> None:
    for seed in range(6):
        plan = plan_epoch([4] * 3, BatchPolicy("bucket_rows", rows=2, bucket_edges=(4,)), seed=seed)
        assert [int(plan.rows[i]) for i in Representatives.of_plan(plan).batches] == [2]


@pytest.mark.parametrize(
    "policy", [BatchPolicy("jagged", token_budget=4096), BatchPolicy("pad_batch", rows=64)], ids=str
)
def test_of_many_widths_none_is_of_a_batch_that_was_not_filled(policy: BatchPolicy) -> None:
    padded = policy.strategy == "pad_batch"
    for seed in range(20):
        lengths = np.minimum(np.random.default_rng(seed).geometric(0.04, 2050), 256)
        plan = plan_epoch(lengths, policy, seed=seed)
        chosen = Representatives.of_plan(plan)
        assert not chosen.complete
        size = plan.rows if padded else plan.batch_slots
        assert min(size[list(chosen.batches)]) > 0.9 * np.median(size)
