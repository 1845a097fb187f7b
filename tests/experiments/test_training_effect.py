from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.batching.plan import plan_epoch
from labkit.experiments.training_effect import Order, compare_orders, make_clicks, order_policy, sample_lengths
from labkit.lengths.histogram import LengthHistogram

LENGTHS = np.clip(np.random.default_rng(0).geometric(0.05, size=1500), 1, 100)


@pytest.fixture(scope="module")
def effects():
    return {e.order: e for e in compare_orders(LENGTHS, rows=32, epochs=2)}


def test_batches_of_one_length_have_a_noisier_gradient_and_less_padding(effects):
    assert effects[Order.BUCKETS].gradient_noise > 1.5 * effects[Order.RANDOM].gradient_noise
    assert effects[Order.BUCKETS].padding_ratio < effects[Order.RANDOM].padding_ratio


def test_the_order_of_batches_changes_no_gradient_at_the_start(effects):
    assert effects[Order.GROUPED].gradient_noise == pytest.approx(effects[Order.BUCKETS].gradient_noise, rel=0.05)


def test_every_order_starts_from_the_same_loss_and_learns(effects):
    assert len({e.losses[0] for e in effects.values()}) == 1
    for e in effects.values():
        assert min(e.losses) < e.losses[0]
        assert list(e.sequences_seen) == sorted(e.sequences_seen)
        assert e.sequences_seen[-1] <= 2 * LENGTHS.size


def test_the_same_seed_gives_the_same_numbers_and_leaves_torchs_own_alone():
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    first, second = (compare_orders(LENGTHS[:300], epochs=1) for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.random.get_rng_state())


def test_noise_is_zero_where_one_batch_holds_everything():
    found = {e.order: e for e in compare_orders(LENGTHS[:200], rows=200, epochs=1)}
    assert found[Order.RANDOM].gradient_noise == pytest.approx(0, abs=1e-10)


def test_orders_are_what_they_say():
    ordered = np.sort(LENGTHS)
    plan = plan_epoch(ordered, order_policy(Order.SORTED, ordered, 32, 8))
    assert plan.order.tolist() == list(range(ordered.size))
    grouped = plan_epoch(LENGTHS, order_policy(Order.GROUPED, LENGTHS, 32, 8))
    assert (np.diff(grouped.padded_lengths) >= 0).all()


def test_a_batch_of_histories_is_cut_out_of_the_whole():
    clicks = make_clicks(np.array([2, 0, 3]), 0)
    items, offsets, answers = clicks.batch(np.array([2, 0]))
    assert items.tolist() == [*clicks.items[2:5].tolist(), *clicks.items[0:2].tolist()]
    assert offsets.tolist() == [0, 3, 5]
    assert answers.tolist() == clicks.answers[[2, 0]].tolist()


def test_small_data_is_taken_whole_and_large_data_sampled():
    h = LengthHistogram(np.array([0, 3, 9]), np.array([5, 2, 4]))
    assert sorted(sample_lengths(h, 100, 0).tolist()) == [3, 3, 9, 9, 9, 9]
    assert sample_lengths(h, 3, 0).size == 3
