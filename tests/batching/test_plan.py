"""Epoch plans: small ones by hand, the same in every process, another in every epoch, batches in shuffled order."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from labkit.errors import PolicyError
from tests.batching.checks import assert_sound

LENGTHS = [(k * k) % 37 for k in range(200)]
FIELDS = {"rows": 8, "bucket_edges": (4, 12, 40), "token_budget": 96}
BUCKETS = [s for s in Strategy if STRATEGIES[s].batching is Batching.BUCKETS]


def plan(strategy: str, *, seed: int = 0, epoch: int = 0, **fields: object) -> EpochPlan:
    return plan_epoch(LENGTHS, BatchPolicy(strategy, **(FIELDS | fields)), seed=seed, epoch=epoch)


def arrays(found: EpochPlan) -> list[list[int]]:
    return [a.tolist() for a in (found.order, found.batch_offsets, found.padded_lengths, found.rows, found.batch_slots)]


# --- by hand


def test_a_budget_counts_padded_slots() -> None:
    # C3: 2 2 2 2 10, budget 20: 10 rows of width 2 fit, 2 of width 10
    found = plan_epoch(
        [2, 2, 2, 2, 10], BatchPolicy("bucket_budget", bucket_edges=(2, 10), token_budget=20, shuffle=False)
    )
    assert found.rows.tolist() == [4, 1]
    assert found.batch_slots.tolist() == [8, 10]
    assert [batch.tolist() for batch in found] == [[0, 1, 2, 3], [4]]


def test_a_jagged_budget_counts_events() -> None:
    # C3: 8 events of four rows, 18 with the fifth
    found = plan_epoch([2, 2, 2, 2, 10], BatchPolicy("jagged", token_budget=17, shuffle=False))
    assert (found.rows.tolist(), found.batch_slots.tolist()) == ([4, 1], [8, 10])
    assert found.padded_lengths.tolist() == [2, 10]


def test_without_a_shuffle_the_given_order_stays_bucket_after_bucket() -> None:
    found = plan_epoch([9, 1, 8, 2], BatchPolicy("bucket_rows", bucket_edges=(2, 9), rows=1, shuffle=False))
    assert found.order.tolist() == [1, 3, 0, 2]
    assert plan_epoch([9, 1, 8, 2], BatchPolicy("pad_max", rows=3, shuffle=False)).order.tolist() == [0, 1, 2, 3]


def test_ghosts_are_in_rows_and_never_in_indices() -> None:
    # 5 rows, 4 of width 4 fit 16: 2 batches of 3 rows, the last one with 2 indices
    found = plan_epoch([3] * 5, BatchPolicy("bucket_graph", bucket_edges=(4,), token_budget=16, shuffle=False))
    assert found.rows.tolist() == [3, 3]
    assert [batch.size for batch in found] == [3, 2]
    assert found.ghost_rows == 1


@pytest.mark.parametrize(("drop_last", "batches"), [(True, 63), (False, 66)])
def test_drop_last_is_by_bucket(drop_last: bool, batches: int) -> None:
    # C7
    lengths = [k + 1 for k, size in enumerate([31, 33, 29, 20, 16]) for _ in range(size)]
    policy = BatchPolicy("bucket_rows", rows=2, bucket_edges=(1, 2, 3, 4, 5), drop_last=drop_last)
    found = plan_epoch(lengths, policy)
    assert (len(found), found.sequences_dropped) == (batches, 3 if drop_last else 0)
    assert_sound(found, lengths)


def test_jagged_shapes_are_rows_and_events() -> None:
    found = plan_epoch([2, 2, 1, 3, 4], BatchPolicy("jagged", token_budget=4, shuffle=False))
    assert [batch.tolist() for batch in found] == [[0, 1], [2, 3], [4]]
    assert found.shapes == 2  # (2, 4) twice, (1, 4)


def test_batches_are_views_and_cannot_be_written() -> None:
    found = plan("bucket_rows")
    assert found[0].base is found.order
    assert found[-1].tolist() == found[len(found) - 1].tolist()
    for array in (found[0], found.order, found.rows, found.padded_lengths, found.batch_offsets, found.batch_slots):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for missing in (len(found), -len(found) - 1):
        with pytest.raises(
            IndexError, match=rf"^batch {missing} does not exist: the epoch has {len(found)} batches\.$"
        ):
            found[missing]


# --- seeds and epochs


def digest() -> str:
    """Of every array of two epochs of every strategy; run here and in another process."""
    found = hashlib.sha256()
    for strategy in Strategy:
        for epoch in (0, 1):
            for array in arrays(plan(strategy, seed=5, epoch=epoch)):
                found.update(np.array(array, dtype="<i8").tobytes())
    return found.hexdigest()


def test_another_process_makes_the_same_plans_to_the_last_bit() -> None:
    # C11
    code = (
        "import warnings; warnings.simplefilter('error'); from tests.batching.test_plan import digest; print(digest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest()


@pytest.mark.parametrize("strategy", Strategy)
def test_the_same_seed_and_epoch_repeat_and_others_do_not(strategy: Strategy) -> None:
    first = plan(strategy)
    assert arrays(plan(strategy)) == arrays(first)
    for other in (plan(strategy, epoch=1), plan(strategy, seed=1)):
        assert sorted(other.order.tolist()) == sorted(first.order.tolist())
        assert other.order.tolist() != first.order.tolist()
    # (seed, epoch) is a pair, not a sum
    assert plan(strategy, seed=1, epoch=0).order.tolist() != plan(strategy, seed=0, epoch=1).order.tolist()


@pytest.mark.parametrize("strategy", Strategy)
def test_without_a_shuffle_every_epoch_is_the_same(strategy: Strategy) -> None:
    assert arrays(plan(strategy, shuffle=False)) == arrays(plan(strategy, shuffle=False, seed=3, epoch=9))


@pytest.mark.parametrize("strategy", BUCKETS)
def test_rows_are_shuffled_inside_their_bucket(strategy: Strategy) -> None:
    grouped = plan(strategy, batch_order="grouped")
    inside = [i for i in grouped.order.tolist() if LENGTHS[i] <= 4]
    assert inside == grouped.order.tolist()[: len(inside)]
    assert inside != sorted(inside)


@pytest.mark.parametrize("name", ["seed", "epoch"])
@pytest.mark.parametrize(
    ("value", "message"),
    [(-1, "{} must be 0 or more: got -1."), (0.5, "{} must be a whole number: got 0.5 (float).")],
)
def test_a_seed_or_epoch_that_is_none_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        plan_epoch([1, 2], BatchPolicy("pad_max"), **{name: value})
    assert str(caught.value) == message.format(name)


# --- the order of batches


def lag1(values: np.ndarray) -> float:
    return float(np.corrcoef(values[:-1], values[1:])[0, 1])


def longest(found: EpochPlan, lengths: np.ndarray) -> np.ndarray:
    return np.array([lengths[batch].max() for batch in found])


@pytest.mark.parametrize("strategy", BUCKETS)
def test_batches_come_in_shuffled_order_at_no_cost_in_padding(strategy: str) -> None:
    # C12: grouped, one batch's longest row is much like the next one's; shuffled, it tells nothing about it
    lengths = np.minimum(np.random.default_rng(3).lognormal(2.5, 1, 20_000).astype(int), 200)
    fields = {"rows": 16, "bucket_edges": (4, 8, 16, 24, 32, 48, 64, 80, 100, 120, 150, 200), "token_budget": 512}
    shuffled = plan_epoch(lengths, BatchPolicy(strategy, **fields))
    grouped = plan_epoch(lengths, BatchPolicy(strategy, **fields, batch_order="grouped"))
    assert len(shuffled) == len(grouped) >= 500
    assert abs(lag1(longest(shuffled, lengths))) < 0.2
    assert lag1(longest(grouped, lengths)) > 0.8  # the check can fail
    assert shuffled.slots == grouped.slots
    assert (np.diff(grouped.padded_lengths) >= 0).all()  # grouped: shortest first


@pytest.mark.parametrize("strategy", ["pad_batch", "jagged", "bucket_rows"])
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_shuffle_does_not_follow_lengths_that_were_drawn_from_the_same_seed(strategy: str, seed: int) -> None:
    # default_rng((seed, 0)) is default_rng(seed): the same numbers would sort the data by what they made of it
    drawn = np.random.default_rng(seed).random(4000)
    lengths = 1 + (1000 * drawn**3).astype(np.int64)
    plan = plan_epoch(lengths, BatchPolicy(strategy, rows=50, bucket_edges=(1001,), token_budget=20_000), seed=seed)
    place = np.arange(plan.order.size)
    assert abs(np.corrcoef(place, drawn[plan.order])[0, 1]) < 0.08  # five standard errors of 4000
