"""BucketBatchSampler: the plan as lists of ints, epochs, resuming, and what it warns of."""

from __future__ import annotations

import warnings

import pytest

from labkit.batching.pieces import PieceIndex
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.strategies import Strategy
from labkit.errors import LengthsError, PolicyError

LENGTHS = [(k * k) % 37 for k in range(100)]
POLICY = BatchPolicy("bucket_budget", bucket_edges=(4, 12, 40), token_budget=96)


def sampler(policy: BatchPolicy = POLICY, **values: int) -> BucketBatchSampler:
    return BucketBatchSampler(LENGTHS, policy, **values)


def planned(epoch: int = 0, seed: int = 0, policy: BatchPolicy = POLICY) -> list[list[int]]:
    return [batch.tolist() for batch in plan_epoch(LENGTHS, policy, seed=seed, epoch=epoch)]


# --- epochs


@pytest.mark.parametrize("strategy", Strategy)
def test_batches_are_those_of_the_plan_as_lists_of_ints(strategy: Strategy) -> None:
    policy = BatchPolicy(strategy, rows=8, bucket_edges=(4, 12, 40), token_budget=96)
    found = sampler(policy, seed=3)
    batches = list(found)
    assert batches == planned(seed=3, policy=policy)
    assert len(found) == len(batches)
    kind = PieceIndex if strategy is Strategy.PACKED else int
    assert all(type(index) is kind for batch in batches for index in batch)


def test_another_epoch_is_another_order() -> None:
    # C11
    found = sampler()
    first = list(found)
    found.set_epoch(1)
    second = list(found)
    assert second == planned(epoch=1) != first
    found.set_epoch(0)
    assert list(found) == first


def test_a_second_pass_without_set_epoch_warns_and_repeats() -> None:
    found = sampler()
    first = list(found)
    with pytest.warns(
        UserWarning, match=r"^second pass over epoch 0: .* Call set_epoch\(epoch\) before every epoch\.$"
    ):
        assert list(found) == first


def test_no_warning_where_every_pass_has_its_epoch_or_nothing_is_shuffled() -> None:
    found = sampler()
    for epoch in range(3):
        found.set_epoch(epoch)
        list(found)
    still = sampler(BatchPolicy("pad_max", shuffle=False))
    assert list(still) == list(still)  # warnings are errors


def test_the_warning_points_at_the_loop() -> None:
    found = sampler()
    list(found)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(found)
    assert [w.filename for w in caught] == [__file__]


def test_iterators_that_are_not_used_are_no_passes() -> None:
    # a DataLoader with workers asks for an iterator twice and uses one of them
    found = sampler()
    state = found.state_dict(batches_consumed=2)
    found.load_state_dict(state)
    iter(found)
    assert list(found) == planned()[2:]


# --- resuming


@pytest.mark.parametrize("consumed", [0, 1, 5])
def test_a_run_goes_on_where_it_stopped(consumed: int) -> None:
    before = sampler(seed=2)
    before.set_epoch(4)
    state = before.state_dict(batches_consumed=consumed)
    after = sampler()
    after.load_state_dict(state)
    assert (after.seed, after.epoch) == (2, 4)
    after.set_epoch(4)  # what a training loop does anyway keeps the place
    assert len(after) == len(planned(4, 2)) - consumed
    assert list(after) == planned(4, 2)[consumed:]
    assert len(after) == len(planned(4, 2))  # what was consumed before counts once
    after.set_epoch(5)
    assert list(after) == planned(5, 2)  # the epoch after is whole again


def test_an_epoch_that_was_finished_resumes_with_nothing_left() -> None:
    before = sampler()
    state = before.state_dict(batches_consumed=len(before))
    after = sampler()
    after.load_state_dict(state)
    assert list(after) == []


def test_a_state_is_plain_json_types() -> None:
    assert sampler(seed=2).state_dict(batches_consumed=3) == {
        "seed": 2,
        "epoch": 0,
        "batches_consumed": 3,
        "sequences": 100,
        "world_size": 1,
    }


def test_a_state_that_does_not_fit_is_refused() -> None:
    found = sampler()
    batches = len(found)
    with pytest.raises(PolicyError, match=rf"^batches_consumed 999 is above the {batches} batches of epoch 0\.$"):
        found.state_dict(batches_consumed=999)
    with pytest.raises(PolicyError, match=r"^batches_consumed must be 0 or more: got -1\.$"):
        found.state_dict(batches_consumed=-1)
    state = found.state_dict(batches_consumed=0)
    with pytest.raises(PolicyError, match=r"^sampler state is of 7 sequences, this data set has 100\.$"):
        found.load_state_dict(state | {"sequences": 7})
    with pytest.raises(PolicyError, match=r"^sampler state lacks seed, sequences, world_size: pass what state_dict "):
        found.load_state_dict({"epoch": 0, "batches_consumed": 0})
    with pytest.raises(PolicyError, match=rf"^batches_consumed must be at most {batches}: got 999\.$"):
        found.load_state_dict(state | {"batches_consumed": 999})


@pytest.mark.parametrize(
    "wrong",
    [{"seed": -1}, {"epoch": "2"}, {"batches_consumed": 999}, {"batches_consumed": -1}, {"batches_consumed": None}],
    ids=str,
)
def test_a_refused_state_leaves_the_sampler_as_it_was(wrong: dict[str, object]) -> None:
    found = sampler(seed=2)
    found.load_state_dict(found.state_dict(batches_consumed=2))
    with pytest.raises(PolicyError, match=next(iter(wrong))):
        found.load_state_dict({**sampler(seed=5).state_dict(batches_consumed=1), "epoch": 3, **wrong})
    assert (found.seed, found.epoch) == (2, 0)
    assert list(found) == planned(seed=2)[2:]


@pytest.mark.parametrize(("state", "shown"), [(None, "None"), (3, "3"), ([("seed", 1)], "")], ids=str)
def test_a_state_that_is_no_dict_is_refused(state: object, shown: str) -> None:
    with pytest.raises(
        PolicyError, match=rf"^sampler state must be a dict: got {shown}.*Pass what state_dict returned"
    ):
        sampler().load_state_dict(state)  # type: ignore[arg-type]


# --- refused and warned of at once


def test_errors_come_before_training() -> None:
    with pytest.raises(PolicyError, match=r"longest length 36 > last bucket edge 4 .*, the first at index "):
        sampler(BatchPolicy("bucket_rows", bucket_edges=(4,)))
    with pytest.raises(LengthsError, match=r"^lengths\[1\] = -1 is negative"):
        BucketBatchSampler([1, -1], POLICY)
    with pytest.raises(PolicyError, match=r"^seed must be 0 or more: got -1\.$"):
        sampler(seed=-1)
    with pytest.raises(PolicyError, match=r"^epoch must be a whole number: got 1\.5 \(float\)\.$"):
        sampler().set_epoch(1.5)  # type: ignore[arg-type]


def test_a_bucket_that_fills_no_batch_is_warned_of() -> None:
    # C7: a bucket of 3, 4 rows: left out of every epoch
    policy = BatchPolicy("bucket_rows", rows=4, bucket_edges=(2, 9), drop_last=True)
    said = (
        r"^drop_last: the 3 sequences of the bucket up to length 2 fill no batch of 4 rows, so they are never "
        r"trained on\. Use fewer rows, wider buckets or drop_last=False\.$"
    )
    with pytest.warns(UserWarning, match=said) as caught:
        found = BucketBatchSampler([2, 2, 2, 9, 9, 9, 9], policy)
    assert caught[0].filename == __file__
    assert found.plan.sequences_dropped == 3


@pytest.mark.parametrize(("strategy", "what"), [("packed", "packs"), ("rnn_packed", "rows")])
def test_packs_or_rows_that_fill_no_batch_are_warned_of(strategy: str, what: str) -> None:
    line = (
        rf"^drop_last: the {what} of all 3 sequences fill no batch of 4, so nothing is ever trained on\. "
        r"Use fewer rows or drop_last=False\.$"
    )
    with pytest.warns(UserWarning, match=line):
        BucketBatchSampler([3, 3, 3], BatchPolicy(strategy, rows=4, drop_last=True))


def test_a_bucket_that_loses_only_its_last_batch_is_not_warned_of() -> None:
    policy = BatchPolicy("bucket_rows", rows=2, bucket_edges=(2, 9, 99), drop_last=True)
    assert BucketBatchSampler([2, 2, 2, 9, 9], policy).plan.sequences_dropped == 1  # the empty bucket loses nobody
