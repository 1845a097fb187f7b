"""BucketBatchSampler on several ranks: its part of the plan, resuming, and what it refuses and warns of."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.strategies import Strategy
from labkit.config import TunedConfig
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram

#: A hundred sequences in three buckets are few for three ranks.
pytestmark = pytest.mark.filterwarnings("ignore:remainder 'repeat'. .* are repetitions:UserWarning")

LENGTHS = [(k * k) % 37 for k in range(100)]
POLICY = BatchPolicy("bucket_budget", bucket_edges=(4, 12, 40), token_budget=96)


def sampler(rank: int = 0, policy: BatchPolicy = POLICY, **options: Any) -> BucketBatchSampler:
    return BucketBatchSampler(LENGTHS, policy, rank=rank, **{"world_size": 3} | options)


def planned(rank: int, epoch: int = 0, **options: Any) -> list[list[int]]:
    found = plan_epoch(LENGTHS, POLICY, epoch=epoch, rank=rank, **{"world_size": 3} | options)
    return [batch.tolist() for batch in found]


@pytest.mark.parametrize("strategy", Strategy)
def test_each_rank_has_its_part_of_the_plan(strategy: Strategy) -> None:
    policy = BatchPolicy(strategy, rows=8, bucket_edges=(4, 12, 40), token_budget=96)
    parts = [sampler(rank, policy, seed=3) for rank in range(3)]
    assert len({len(part) for part in parts}) == 1
    for rank, part in enumerate(parts):
        found = plan_epoch(LENGTHS, policy, seed=3, rank=rank, world_size=3)
        assert list(part) == [batch.tolist() for batch in found]
    assert {index for part in parts for batch in part.plan for index in batch.tolist()} == set(range(100))


def test_options_reach_the_plan() -> None:
    options = {"remainder": "uneven", "balance": "quadratic", "alpha": 0.5}
    found = sampler(2, **options)
    assert list(found) == planned(2, **options)
    assert found.plan.all_ranks.remainder == "uneven"
    assert found.plan.all_ranks.balance == "quadratic"


def test_an_initialised_process_group_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda *_: 4)
    assert BucketBatchSampler(LENGTHS, POLICY).plan.world_size == 1


def test_a_tuned_configuration_makes_the_sampler_of_a_rank() -> None:
    tuned = TunedConfig.from_policy(LengthHistogram.from_lengths(LENGTHS), POLICY)
    options: dict[str, Any] = {"seed": 1, "world_size": 3, "remainder": "uneven", "balance": "slots"}
    assert list(tuned.sampler(LENGTHS, rank=1, **options)) == planned(1, **options)


# --- resuming


@pytest.mark.parametrize("consumed", [0, 1, 3])
@pytest.mark.parametrize("saved_by", [0, 2])
def test_the_state_of_any_rank_resumes_all_of_them(consumed: int, saved_by: int) -> None:
    before = sampler(saved_by)
    before.set_epoch(4)
    state = json.loads(json.dumps(before.state_dict(batches_consumed=consumed)))
    for rank in range(3):
        after = sampler(rank)
        after.load_state_dict(state)
        assert list(after) == planned(rank, epoch=4)[consumed:]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_what_workers_fetched_ahead_is_not_lost(workers: int) -> None:
    before = sampler(1)
    loader: DataLoader[Any] = DataLoader(range(100), batch_sampler=before, num_workers=workers, collate_fn=list)
    batches = iter(loader)
    seen = [next(batches) for _ in range(2)]  # the workers have asked for more than two by now
    state = before.state_dict(batches_consumed=len(seen))
    after = sampler(1)
    after.load_state_dict(state)
    rest = list(DataLoader(range(100), batch_sampler=after, num_workers=workers, collate_fn=list))
    assert seen + rest == planned(1)


def test_a_state_of_another_number_of_ranks_is_refused() -> None:
    state = sampler().state_dict(batches_consumed=1)
    assert state["world_size"] == 3
    with pytest.raises(PolicyError) as caught:
        sampler(world_size=4).load_state_dict(state)
    assert str(caught.value) == (
        "sampler state has world_size 3, this sampler has 4: batches would be missed or seen twice. "
        "Resume with world_size 3, or begin the next epoch."
    )
    with pytest.raises(PolicyError, match=r"^sampler state has world_size 3, this sampler has 1: "):
        BucketBatchSampler(LENGTHS, POLICY).load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"remainder": "uneven"}, "sampler state has remainder repeat, this sampler has uneven: "),
        ({"balance": "slots"}, "sampler state has balance none, this sampler has slots: "),
    ],
    ids=str,
)
def test_a_state_that_was_dealt_another_way_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError, match=f"^{message}"):
        sampler(**options).load_state_dict(sampler().state_dict(batches_consumed=1))


def test_another_alpha_matters_only_where_it_is_used() -> None:
    sampler(alpha=0.1).load_state_dict(sampler(alpha=0.2).state_dict(batches_consumed=1))
    state = sampler(balance="quadratic", alpha=0.2).state_dict(batches_consumed=1)
    with pytest.raises(PolicyError, match=r"^sampler state has alpha 0\.2, this sampler has 0\.1: "):
        sampler(balance="quadratic", alpha=0.1).load_state_dict(state)


def test_a_rank_with_one_batch_less_has_finished_when_the_others_have() -> None:
    policy = BatchPolicy("pad_max", rows=1)
    options: dict[str, Any] = {"world_size": 2, "remainder": "uneven"}
    ranks = [BucketBatchSampler([1] * 5, policy, rank=rank, **options) for rank in range(2)]
    state = ranks[0].state_dict(batches_consumed=3)
    ranks[1].load_state_dict(state)
    assert list(ranks[1]) == []
    with pytest.raises(PolicyError, match=r"^batches_consumed must be at most 3: got 4\.$"):
        ranks[1].load_state_dict(state | {"batches_consumed": 4})


def test_a_sampler_can_be_pickled_with_its_place() -> None:
    found = sampler(1)
    found.load_state_dict(sampler().state_dict(batches_consumed=2))
    assert list(pickle.loads(pickle.dumps(found))) == planned(1)[2:]


# --- refused and warned of at once


def test_a_rank_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"^rank 3 does not exist: world_size is 3, so ranks are 0 \.\. 2\.$"):
        sampler(3)


def test_a_bucket_with_fewer_batches_than_ranks_is_warned_of() -> None:
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9))
    said = (
        r"^remainder 'drop': the 2 sequences of the bucket up to length 2 fill 2 batches for 3 ranks, so they are "
        r"never trained on\. Use fewer rows, wider buckets or remainder 'repeat'\.$"
    )
    with pytest.warns(UserWarning, match=said) as caught:
        BucketBatchSampler([2, 2, 9, 9, 9, 9], policy, world_size=3, remainder="drop")
    assert len(caught) == 1  # the other bucket loses one batch, another in every epoch
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="are repetitions") as caught:
        BucketBatchSampler([2, 2, 9, 9, 9, 9], policy, world_size=3)
    assert len(caught) == 1  # nobody is left out


def test_many_repetitions_are_warned_of_at_once() -> None:
    policy = BatchPolicy("pad_max", rows=4)
    said = (
        r"^remainder 'repeat': 8 places in every epoch are repetitions, 100\.0 % of the 8 sequences, so that 4 ranks "
        r"have equal steps\. Use smaller batches, fewer buckets or ranks, or remainder 'uneven' or 'drop'\.$"
    )
    with pytest.warns(UserWarning, match=said) as caught:
        BucketBatchSampler([5] * 8, policy, rank=1, world_size=4)
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.filterwarnings("error")
def test_few_repetitions_or_another_remainder_are_not_warned_of() -> None:
    policy = BatchPolicy("pad_max", rows=1)
    assert BucketBatchSampler([5] * 10, policy, world_size=11).plan.all_ranks.sequences_repeated == 1  # a tenth
    BucketBatchSampler([5] * 4, policy, world_size=3, remainder="uneven")
    BucketBatchSampler([5] * 4, policy, world_size=3, remainder="drop")
