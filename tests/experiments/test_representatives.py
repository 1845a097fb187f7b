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
