"""Ranks: one plan dealt to many processes. Small ones by hand, every strategy by property, wrong ones caught."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.dealing import Remainder
from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.share import Balance
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from labkit.errors import LengthsError, PolicyError
from tests.batching import naive, rank_checks
from tests.batching.checks import assert_within_budget
from tests.batching.draws import FEW, LENGTHS, policies
from tests.batching.rank_checks import assert_dealt, plans_of

MANY = settings(max_examples=150)
SINGLE = BatchPolicy("pad_max", rows=1, shuffle=False)


def orders(plans: list[EpochPlan]) -> list[list[int]]:
    return [plan.order.tolist() for plan in plans]


# --- by hand


def test_token_budget_batches_are_dealt_round_robin() -> None:
    # C9: batches of 4, 1, 3 and 2 rows: rank 0 has the first and the third
    lengths = [1, 1, 1, 1, 4, 1, 1, 2, 2, 2]
    plans = plans_of(lengths, BatchPolicy("jagged", token_budget=4, shuffle=False), 2)
    assert [[b.tolist() for b in plan] for plan in plans] == [[[0, 1, 2, 3], [5, 6, 7]], [[4], [8, 9]]]
    assert sorted(index for plan in plans for index in plan.order.tolist()) == list(range(10))


def test_repeat_fills_the_last_step_with_the_first_batches() -> None:
    # C10: 10 batches of one row, 4 ranks: 3 steps are 12, so that 2 come again
    plans = plans_of([5] * 10, SINGLE, 4)
    assert orders(plans) == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]
    assert [plan.sequences_repeated for plan in plans] == [0, 0, 1, 1]
    assert [plan.events_repeated for plan in plans] == [0, 0, 5, 5]
    together = plans[0].all_ranks
    assert (together.sequences_repeated, together.events_repeated) == (2, 10)
    assert together.events + together.events_repeated == 60 == together.kept_events + together.events_lost


def test_drop_leaves_the_last_step_out_and_counts_it() -> None:
    # C10
    plans = plans_of([5] * 10, SINGLE, 4, remainder="drop")
    assert orders(plans) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert [plan.sequences_dropped for plan in plans] == [1, 1, 0, 0]  # on the ranks that would have had them
    assert (plans[3].all_ranks.sequences_dropped, plans[3].all_ranks.events_lost) == (2, 10)


def test_uneven_repeats_and_drops_nothing() -> None:
    plans = plans_of([5] * 10, SINGLE, 4, remainder="uneven")
    assert orders(plans) == [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    # steps of 4, 4 and 2 batches: max / mean is 1, 1 and 2; 3 batches where the mean is 2.5
    assert plans[0].all_ranks.straggler == pytest.approx(4 / 3)
    assert plans[0].all_ranks.epoch_straggler == pytest.approx(1.2)


def test_fewer_batches_than_ranks() -> None:
    assert orders(plans_of([5] * 2, SINGLE, 5)) == [[0], [1], [0], [1], [0]]
    assert orders(plans_of([5] * 2, SINGLE, 3, remainder="uneven")) == [[0], [1], []]
    # C10
    with pytest.raises(PolicyError) as caught:
        plan_epoch([5] * 2, SINGLE, rank=0, world_size=4, remainder="drop")
    assert str(caught.value) == (
        "2 batches are too few for 4 ranks: remainder 'drop' leaves every rank without a batch. "
        "Use fewer ranks, smaller batches, or remainder 'repeat'."
    )


def test_buckets_are_dealt_apart_and_repeat_their_own() -> None:
    # bucket 1: 3 batches, one comes again; bucket 2: 2 batches. A step is of one bucket.
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9), shuffle=False)
    plans = plans_of([2, 2, 2, 9, 9], policy, 2)
    assert orders(plans) == [[0, 2, 3], [1, 0, 4]]
    assert [plan.padded_lengths.tolist() for plan in plans] == [[2, 2, 9]] * 2
    assert (plans[1].sequences_repeated, plans[1].events_repeated) == (1, 2)


def test_drop_with_buckets_says_what_the_largest_has() -> None:
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9))
    with pytest.raises(PolicyError, match=r"^5 batches \(at most 3 in a bucket\) are too few for 4 ranks: "):
        plan_epoch([2, 2, 2, 9, 9], policy, world_size=4, remainder="drop")


def test_uneven_buckets_leave_the_short_steps_to_the_end() -> None:
    # 3 and 5 batches, 2 ranks: 1 + 2 whole steps, then what is left of both buckets is one step more
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9), shuffle=False)
    plans = plans_of([2, 2, 2, 9, 9, 9, 9, 9], policy, 2, remainder="uneven")
    assert orders(plans) == [[0, 3, 5, 2], [1, 4, 6, 7]]


def test_what_no_rank_could_have_counts_on_rank_0() -> None:
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(4,), overflow="drop", shuffle=False)
    plans = plans_of([4, 9, 3, 9], policy, 2)
    assert [plan.events_lost for plan in plans] == [18, 0]
    assert [plan.sequences_dropped for plan in plans] == [2, 0]


def test_one_process_has_the_figures_of_all() -> None:
    whole = plan_epoch([5, 3], BatchPolicy("pad_recent", max_length=4))
    together = whole.all_ranks
    assert (together.world_size, together.batches, together.events, together.kept_events) == (1, 1, 8, 7)
    assert (together.straggler, together.epoch_straggler) == (1, 1)


def test_the_steps_of_buckets_are_shuffled() -> None:
    # 40 batches of each bucket, 2 ranks: grouped they come one bucket after the other
    fields: dict[str, Any] = {"rows": 1, "bucket_edges": (2, 9)}
    lengths = [2] * 40 + [9] * 40
    grouped = plan_epoch(lengths, BatchPolicy("bucket_rows", **fields, batch_order="grouped"), world_size=2)
    shuffled = plan_epoch(lengths, BatchPolicy("bucket_rows", **fields), world_size=2)
    assert grouped.padded_lengths.tolist() == [2] * 20 + [9] * 20
    assert sorted(shuffled.padded_lengths.tolist()) == grouped.padded_lengths.tolist()
    assert 10 < np.count_nonzero(np.diff(shuffled.padded_lengths)) < 30


# --- balance


def test_batches_of_similar_slots_share_a_step() -> None:
    # widths 9 1 8 2, in turn: 9 beside 1, 8 beside 2, so that max / mean is 1.8 and 1.6; sorted: 18 / 17 and 4 / 3
    policy = BatchPolicy("pad_batch", rows=1, shuffle=False)
    in_turn = plans_of([9, 1, 8, 2], policy, 2)
    assert orders(in_turn) == [[0, 2], [1, 3]]
    assert in_turn[0].all_ranks.straggler == pytest.approx((1.8 + 1.6) / 2)
    balanced = plans_of([9, 1, 8, 2], policy, 2, balance="slots")
    # the step of 9 and 8 first; then 2 goes to the rank that has 8
    assert orders(balanced) == [[0, 1], [2, 3]]
    assert balanced[0].all_ranks.straggler == pytest.approx((18 / 17 + 4 / 3) / 2)
    assert balanced[0].all_ranks.epoch_straggler == 1


def test_quadratic_balance_weighs_long_rows() -> None:
    # all batches have 8 events; squares 64, 8 x 1, 2 x 16, 4 x 4. Largest first: 64 | 32, then 16 | 8 the other way
    lengths = [8, *[1] * 8, 4, 4, 2, 2, 2, 2]
    policy = BatchPolicy("jagged", token_budget=8, shuffle=False)
    plans = plans_of(lengths, policy, 2, balance="quadratic", alpha=1.0)
    assert [[b.tolist() for b in plan] for plan in plans] == [
        [[0], list(range(1, 9))],
        [[9, 10], [11, 12, 13, 14]],
    ]
    # 72 | 40 and 16 | 24
    assert plans[0].all_ranks.straggler == pytest.approx((72 / 56 + 24 / 20) / 2)
    assert plans_of(lengths, policy, 2, balance="slots")[0].all_ranks.straggler == 1


@MANY
@given(st.data(), LENGTHS | FEW, st.integers(2, 8), st.sampled_from(Remainder), st.sampled_from(["slots", "quadratic"]))
def test_balance_never_makes_waiting_longer_nor_changes_what_is_lost(
    data: st.DataObject, lengths: list[int], world_size: int, remainder: str, balance: str
) -> None:
    strategies = tuple(s for s in Strategy if STRATEGIES[s].batching is not Batching.BUCKETS)
    policy = data.draw(policies(lengths, strategies))
    options: dict[str, Any] = {"world_size": world_size, "remainder": remainder}
    try:
        in_turn = plan_epoch(lengths, policy, **options).all_ranks
    except PolicyError:
        return
    plans = plans_of(lengths, policy, balance=balance, **options)
    assert_dealt(plans, plan_epoch(lengths, policy), lengths, remainder)
    balanced = plans[0].all_ranks
    for name in rank_checks.SUMS:
        assert getattr(balanced, name) == getattr(in_turn, name)
    if balance == "slots" and remainder != "uneven":
        # sorted steps have the least sum of maxima, the time of an epoch
        assert longest_steps(plans) <= longest_steps(plans_of(lengths, policy, **options))


def longest_steps(plans: list[EpochPlan]) -> int:
    return int(np.stack([plan.batch_slots for plan in plans]).max(axis=0).sum())


def test_balance_is_worth_something() -> None:
    lengths = np.minimum(np.random.default_rng(0).lognormal(2, 1.5, 5000).astype(int), 2000)
    policy = BatchPolicy("pad_batch", rows=16)
    in_turn = plan_epoch(lengths, policy, world_size=8).all_ranks
    balanced = plan_epoch(lengths, policy, world_size=8, balance="slots").all_ranks
    assert in_turn.straggler > 2
    assert balanced.straggler < 1.1
    assert balanced.epoch_straggler < 1.05 < in_turn.epoch_straggler


# --- every strategy


@MANY
@pytest.mark.parametrize("strategy", Strategy)
@given(st.data(), LENGTHS | FEW, st.integers(1, 8), st.sampled_from(Remainder), st.sampled_from(Balance))
def test_every_strategy_is_dealt_whole(
    strategy: Strategy, data: st.DataObject, lengths: list[int], world_size: int, remainder: str, balance: str
) -> None:
    policy = data.draw(policies(lengths, (strategy,)))
    epoch = data.draw(st.integers(0, 3))
    whole = plan_epoch(lengths, policy, seed=7, epoch=epoch)
    options: dict[str, Any] = {"remainder": remainder, "balance": balance, "seed": 7, "epoch": epoch}
    if remainder == "drop" and world_size > 1 and not enough(whole, lengths, world_size):
        with pytest.raises(PolicyError, match=f"too few for {world_size} ranks"):
            plans_of(lengths, policy, world_size, **options)
        return
    plans = plans_of(lengths, policy, world_size, **options)
    assert_dealt(plans, whole, lengths, remainder)
    for plan in plans:
        assert_within_budget(plan, lengths)


def enough(whole: EpochPlan, lengths: list[int], world_size: int) -> bool:
    """Some bucket has a batch for every rank."""
    if whole.policy.spec.batching is not Batching.BUCKETS:
        return len(whole) >= world_size
    places = [naive.place(lengths[int(batch[0])], whole.policy, lengths) for batch in whole]
    return max(Counter(p.bucket for p in places if p is not None).values(), default=0) >= world_size


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("world_size", range(1, 9))
def test_every_number_of_sequences(strategy: Strategy, world_size: int) -> None:
    policy = BatchPolicy(strategy, rows=2, bucket_edges=(3, 9), token_budget=18)
    with pytest.raises(LengthsError, match=r"^lengths are empty"):
        plan_epoch([], policy, world_size=world_size)
    for n in range(1, 51):
        lengths = [(k * k) % 10 for k in range(n)]
        assert_dealt(plans_of(lengths, policy, world_size), plan_epoch(lengths, policy), lengths, "repeat")


@pytest.mark.parametrize("strategy", Strategy)
def test_a_single_process_has_the_same_plan_as_without_ranks(strategy: Strategy) -> None:
    policy = BatchPolicy(strategy, rows=3, bucket_edges=(4, 12, 40), token_budget=96)
    lengths = [(k * k) % 37 for k in range(100)]
    plain = plan_epoch(lengths, policy, seed=3, epoch=2)
    for remainder in Remainder:
        one = plan_epoch(lengths, policy, seed=3, epoch=2, rank=0, world_size=1, remainder=remainder, balance="slots")
        assert rank_checks.pieces(one) == rank_checks.pieces(plain)
        assert one.all_ranks == plain.all_ranks


def digest() -> str:
    """Of the plans of three ranks of every strategy; run here and in another process."""
    found = hashlib.sha256()
    for strategy in Strategy:
        policy = BatchPolicy(strategy, rows=3, bucket_edges=(4, 12, 40), token_budget=96)
        for balance in Balance:
            for plan in plans_of([(k * k) % 37 for k in range(100)], policy, 3, seed=5, epoch=1, balance=balance):
                for array in (plan.order, plan.batch_offsets, plan.rows, plan.padded_lengths):
                    found.update(np.array(array, dtype="<i8").tobytes())
    return found.hexdigest()


def test_another_process_deals_the_same() -> None:
    code = (
        "import warnings; warnings.simplefilter('error'); from tests.batching.test_ranks import digest; print(digest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest()


# --- refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"world_size": 0}, "world_size must be 1 or more: got 0."),
        ({"world_size": -2}, "world_size must be 1 or more: got -2."),
        ({"world_size": 2.0}, "world_size must be a whole number: got 2.0 (float)."),
        ({"rank": 4, "world_size": 4}, "rank 4 does not exist: world_size is 4, so ranks are 0 .. 3."),
        ({"rank": 1}, "rank 1 does not exist: world_size is 1, so ranks are 0 .. 0."),
        ({"rank": -1, "world_size": 4}, "rank must be 0 or more: got -1."),
        ({"rank": "0"}, "rank must be a whole number: got '0' (str)."),
        ({"remainder": "wrap"}, "remainder 'wrap' does not exist: use one of repeat, drop, uneven."),
        ({"balance": "events"}, "balance 'events' does not exist: use one of none, slots, quadratic."),
        ({"alpha": -1}, "alpha must be a finite number of 0 or more: got -1."),
        ({"alpha": float("nan")}, "alpha must be a finite number of 0 or more: got nan."),
    ],
    ids=str,
)
def test_a_rank_that_cannot_be_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        plan_epoch([1, 2, 3], SINGLE, **options)
    assert str(caught.value) == message


# --- negative controls


@pytest.fixture
def dealt() -> tuple[list[EpochPlan], EpochPlan, list[int]]:
    lengths = [2, 2, 2, 9, 9, 9, 9, 9]
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9), shuffle=False)
    return plans_of(lengths, policy, 2), plan_epoch(lengths, policy), lengths


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda p: [p[0], p[0]], id="a rank's batches twice, another's never"),
        pytest.param(lambda p: [p[0], replace(p[1], padded_lengths=p[1].padded_lengths[::-1])], id="widths differ"),
        pytest.param(lambda p: [p[0], replace(p[1], sequences_repeated=0)], id="a repetition that is not counted"),
        pytest.param(lambda p: [p[0], replace(p[1], kept_events=p[1].kept_events - 1)], id="an event lost"),
        pytest.param(lambda p: [p[0], replace(p[1], dealt=None)], id="ranks that know different totals"),
        pytest.param(
            lambda p: [p[0], replace(p[1], order=p[1].order[:-1], batch_offsets=p[1].batch_offsets[:-1])],
            id="a batch lost",
        ),
    ],
)
def test_wrong_plans_are_caught(dealt: Any, wrong: Any) -> None:
    plans, whole, lengths = dealt
    assert_dealt(plans, whole, lengths, "repeat")
    with pytest.raises(AssertionError):
        assert_dealt(wrong(plans), whole, lengths, "repeat")
