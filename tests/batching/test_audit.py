"""Audits: by hand, sound plans of every strategy by property, and plans that are wrong on purpose."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.audit import Audit, audit_ranks
from labkit.batching.dealing import Remainder
from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.errors import LengthsError, PolicyError
from tests.batching.draws import FEW, LENGTHS, policies
from tests.batching.rank_checks import plans_of

MANY = settings(max_examples=100)


def audit(lengths: list[int], strategy: str, **fields: Any) -> Audit:
    return plan_epoch(lengths, BatchPolicy(strategy, **fields)).audit()


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


# --- by hand


def test_padding_ghosts_cuts_and_losses() -> None:
    # 5 rows of width 4, 4 fit the budget of 16: 2 batches of 3 rows, so a ghost; 9 is cut to 4, 5 events lost
    found = audit([3, 3, 9, 0, 1], "bucket_graph", bucket_edges=(4,), token_budget=16, overflow="truncate")
    assert (found.batches, found.slots, found.kept_events, found.ghost_rows) == (2, 24, 11, 1)
    assert found.padding_ratio == 1 - 11 / 24
    assert (found.sequences_truncated, found.events_lost, found.truncated_share) == (1, 5, 0.2)
    assert found.lost_share == 5 / 16
    assert (found.coverage, found.sequences_once, found.sequences_dropped) == (1, 5, 0)
    assert (found.shapes, found.rows_min, found.rows_max) == (1, 3, 3)
    assert found.faults == ()


@pytest.mark.parametrize(("drop_last", "batches", "dropped"), [(True, 63, [1, 1, 1, 0, 0]), (False, 66, [0] * 5)])
def test_dropped_users_are_counted_by_bucket(drop_last: bool, batches: int, dropped: list[int]) -> None:
    # C7
    sizes = [31, 33, 29, 20, 16]
    lengths = [k + 1 for k, size in enumerate(sizes) for _ in range(size)]
    found = audit(lengths, "bucket_rows", rows=2, bucket_edges=(1, 2, 3, 4, 5), drop_last=drop_last)
    assert found.batches == batches
    assert [b.sequences for b in found.buckets] == sizes
    assert [b.sequences_dropped for b in found.buckets] == dropped
    assert [b.batches for b in found.buckets] == [size // 2 if drop_last else -(-size // 2) for size in sizes]
    assert found.warnings == ()


def test_a_bucket_without_a_batch_is_warned_of() -> None:
    # C7: 3 users, 4 rows
    found = audit([2, 2, 2, 9, 9, 9, 9], "bucket_rows", rows=4, bucket_edges=(2, 9), drop_last=True)
    assert (found.buckets[0].batches, found.buckets[0].sequences_dropped) == (0, 3)
    (warning,) = found.warnings
    assert warning == (
        "bucket up to length 2: its 3 sequences fill no batch, so they are never trained on. "
        "Use fewer rows, wider buckets, drop_last=False or remainder 'repeat'."
    )


def test_what_overflow_drops_has_a_row_of_its_own() -> None:
    found = audit([1, 2, 9], "bucket_rows", rows=4, bucket_edges=(2,), overflow="drop")
    above = found.buckets[-1]
    assert (above.edge, above.width, above.sequences, above.sequences_dropped, above.events_lost) == (
        None,
        None,
        1,
        1,
        9,
    )
    assert found.warnings == ("above the last edge: 1 sequences are dropped, 9 events lost.",)
    assert (found.coverage, found.events_lost) == (2 / 3, 9)


def test_repeated_users_are_counted_by_bucket() -> None:
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9), shuffle=False)
    found = audit_ranks(plans_of([2, 2, 2, 9, 9], policy, 2))
    assert [b.sequences_repeated for b in found.buckets] == [1, 0]
    assert (found.sequences_repeated, found.events_repeated, found.sequences_once) == (1, 2, 4)
    assert found.events + found.events_repeated == found.kept_events + found.events_lost
    assert (found.ranks, found.world_size, found.faults) == ((0, 1), 2, ())


def test_overshoot_is_that_of_single_rows() -> None:
    found = audit([3, 30], "bucket_budget", bucket_edges=(4, 30), token_budget=16, oversize="single_row")
    assert (found.overshoot, found.batches_over_budget) == (14, 1)
    assert found.warnings == ("1 batches are above token_budget 16, by up to 14: single rows wider than the budget.",)
    assert found.faults == ()
    assert audit([3, 4], "bucket_budget", bucket_edges=(4,), token_budget=16).overshoot == 0
    none = audit([3, 4], "pad_max")
    assert (none.overshoot, none.reason["overshoot"]) == (None, "pad_max has no token budget")


def test_batches_in_order_of_length_are_warned_of() -> None:
    # C12
    lengths = np.minimum(np.random.default_rng(3).lognormal(2.5, 1, 20_000).astype(int), 200)
    fields: dict[str, Any] = {"rows": 16, "bucket_edges": (4, 8, 16, 24, 32, 48, 64, 80, 100, 120, 150, 200)}
    shuffled = plan_epoch(lengths, BatchPolicy("bucket_rows", **fields)).audit()
    grouped = plan_epoch(lengths, BatchPolicy("bucket_rows", batch_order="grouped", **fields)).audit()
    assert shuffled.lag1 is not None
    assert abs(shuffled.lag1) < 0.2
    assert shuffled.warnings == ()
    assert grouped.lag1 is not None
    assert grouped.lag1 > 0.8
    assert "batches come in order of length" in grouped.warnings[0]
    assert audit([4, 4, 4, 4], "pad_max", rows=1).reason["lag1"].startswith("it takes three batches")


def test_waiting_ranks_are_warned_of() -> None:
    # widths 9 beside 1, 8 beside 2: 1.8 and 1.6 times the mean
    found = audit_ranks(plans_of([9, 1, 8, 2], BatchPolicy("pad_batch", rows=1, shuffle=False), 2))
    assert found.straggler == pytest.approx(1.7)
    (warning,) = found.warnings
    assert warning.startswith("ranks wait: the slowest takes 1.70 times the mean of a step. Use balance 'slots'")


def test_many_repetitions_are_warned_of() -> None:
    # one batch of 4 rows, 3 ranks: 8 places are repetitions
    found = audit_ranks(plans_of([5] * 4, BatchPolicy("pad_max", rows=4), 3))
    (warning,) = found.warnings
    assert warning.startswith("8 places are repetitions, for 4 sequences: buckets have few batches for 3 ranks.")
    whole = audit_ranks(plans_of([5] * 40, BatchPolicy("pad_max", rows=1), 3))  # 2 of 40
    assert (whole.sequences_repeated, whole.warnings) == (2, ())


def test_one_rank_of_several_knows_what_it_has() -> None:
    plan = plan_epoch([5] * 9 + [1], BatchPolicy("pad_max", rows=1, shuffle=False), rank=3, world_size=4)
    found = plan.audit()
    assert (found.ranks, found.world_size, found.batches) == ((3,), 4, 3)
    assert (found.coverage, found.sequences_dropped, found.truncated_share) == (0.3, None, None)
    assert found.reason["sequences_dropped"] == "other ranks have the rest: audit_ranks counts all of them"
    assert (found.straggler, found.faults) == (plan.all_ranks.straggler, ())


# --- advice

VARYING = "; rows vary from 1 to 2 a batch, so use LayerNorm, not BatchNorm."


@pytest.mark.parametrize(
    ("lengths", "fields", "advice"),
    [
        ([8, 7, 8, 8], {"strategy": "pad_max"}, "Padding is 3.1 %, under 30 %: pad, as this plan does."),
        (
            [8, 4, 4, 4],
            {"strategy": "pad_max"},
            "Padding is 37.5 %, between 30 % and 60 %: bucket by length (bucket_budget).",
        ),
        (
            [8, 4, 4, 4],
            {"strategy": "bucket_rows", "bucket_edges": (8,)},
            "Padding is 37.5 % in spite of the buckets: use optimal edges, or more of them.",
        ),
        (
            [10, 1, 1, 1],
            {"strategy": "pad_max"},
            "Padding is 67.5 %, 60 % or more: use jagged, packed or segmented.",
        ),
        (
            [8, 8, 8],
            {"strategy": "pad_max", "rows": 2},
            "Padding is 0 %, under 30 %: pad, as this plan does" + VARYING,
        ),
        (
            [8, 1],
            {"strategy": "jagged"},
            "Nothing is padded: keep this layout if its kernels are fast enough.",
        ),
        (
            [8, 7, 8, 8],
            {"strategy": "bucket_rows", "bucket_edges": (8,)},
            "Padding is 3.1 %, under 30 %: bucket, as this plan does.",
        ),
        ([8, 7, 8, 8], {"strategy": "packed"}, "Padding is 3.1 %, under 30 %: pack, as this plan does."),
        (
            [5, 5],
            {"strategy": "packed", "capacity": 8},
            "Padding is 37.5 % in spite of the packs: use another capacity, more sequences a pack, or jagged.",
        ),
        *(
            ([0, 0], {"strategy": name}, "The batches have no event: there is nothing to pad, to bucket or to pack.")
            for name in ("pad_max", "packed", "jagged")
        ),
        (
            [8, 1],
            {"strategy": "pad_max", "rows": 4, "drop_last": True},
            "There is no batch: use fewer rows, or drop_last=False.",
        ),
    ],
)
def test_advice_is_one_sentence(lengths: list[int], fields: dict[str, Any], advice: str) -> None:
    assert audit(lengths, **fields).advice == advice


# --- every strategy


@MANY
@pytest.mark.parametrize("strategy", Strategy)
@given(st.data(), LENGTHS | FEW, st.integers(1, 5), st.sampled_from(Remainder))
def test_sound_plans_have_no_fault(
    strategy: Strategy, data: st.DataObject, lengths: list[int], world_size: int, remainder: Remainder
) -> None:
    policy = data.draw(policies(lengths, (strategy,)))
    try:
        plans = plans_of(lengths, policy, world_size, remainder=remainder)
    except PolicyError:
        return
    found, together = audit_ranks(plans), plans[0].all_ranks
    assert found.faults == ()
    assert found.events + found.events_repeated == found.kept_events + found.events_lost
    assert (found.straggler, found.epoch_straggler) == (
        pytest.approx(together.straggler),
        pytest.approx(together.epoch_straggler),
    )
    assert [plan.audit().faults for plan in plans] == [()] * world_size
    if found.buckets:
        for name in ("sequences", "batches", "slots", "kept_events", "ghost_rows", "events_lost", "sequences_dropped"):
            assert sum(getattr(b, name) for b in found.buckets) == getattr(found, name)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_dictionary_is_strict_json_with_provenance() -> None:
    found = json.loads(json.dumps(audit([3, 9], "pad_max", rows=1).to_dict(), allow_nan=False))
    assert (found["strategy"], found["ranks"], found["warnings"], found["ok"]) == ("pad_max", [0], [], True)
    assert found["buckets"][0]["edge"] == 9
    assert found["provenance"]["padding_ratio"] == "exact"
    assert "overshoot" not in found["provenance"]
    numbers = {k for k, v in found.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    assert set(found["provenance"]) == numbers


# --- refused


def test_plans_that_do_not_belong_together_are_refused() -> None:
    policy = BatchPolicy("pad_max", rows=1)
    one, two = plans_of([1, 2, 3, 4], policy, 2)
    other = plan_epoch([1, 2, 3, 4], policy, rank=1, world_size=3)
    with pytest.raises(PolicyError, match=r"^no plan to audit: pass one, or those of all ranks\.$"):
        audit_ranks([])
    for wrong, said in (([one, one], "0 of 2, 0 of 2"), ([one, other], "0 of 2, 1 of 3")):
        with pytest.raises(PolicyError, match=rf"^these plans are not of one epoch, .*: got ranks {said}\.$"):
            audit_ranks(wrong)
    with pytest.raises(PolicyError, match=r"^this plan keeps no lengths: pass those that it was made of\.$"):
        replace(two, lengths=None).audit()
    assert replace(two, lengths=None).audit([1, 2, 3, 4]).faults == ()
    with pytest.raises(LengthsError, match=r"^lengths are empty"):
        two.audit([])


# --- negative controls

SHORT = [2, 2, 2, 2, 10]
#: Width 2: 4 rows, 8 slots; width 10: 1 row, 10 slots.
BUDGET = BatchPolicy("bucket_budget", bucket_edges=(2, 10), token_budget=20, shuffle=False)
JAGGED = BatchPolicy("jagged", token_budget=11, shuffle=False)  # 2 2 2 2 | 10
PACKED = BatchPolicy("packed", capacity=10, shuffle=False)  # 10 | 2 2 2 2


@pytest.mark.parametrize(
    ("policy", "wrong", "fault"),
    [
        pytest.param(BUDGET, {"order": ints(0, 1, 2, 2, 4)}, "1 sequences are in more than one batch, the first is 2."),
        pytest.param(BUDGET, {"order": ints(0, 1, 2, 5, 4)}, "1 indices do not exist: there are 5 sequences."),
        pytest.param(BUDGET, {"order": ints(0, 1, 2, -1, 4)}, "1 indices do not exist: there are 5 sequences."),
        pytest.param(
            BUDGET,
            {"order": ints(0, 1, 2, 4), "batch_offsets": ints(0, 3, 4)},
            "the plan says sequences_dropped 0, counted are 1.",
        ),
        pytest.param(BUDGET, {"rows": ints(11, 1)}, "batch 0 has 22 slots, above token_budget 20"),
        pytest.param(BUDGET, {"batch_offsets": ints(0, 3, 5)}, "batch 1 has sequences of several buckets"),
        pytest.param(BUDGET, {"batch_offsets": ints(0, 5, 5)}, "batch 1 is empty"),
        pytest.param(BUDGET, {"padded_lengths": ints(1, 10)}, "batch 0 has a row longer than its width"),
        pytest.param(BUDGET, {"rows": ints(3, 1)}, "batch 0 has more sequences than rows"),
        pytest.param(BUDGET, {"batch_slots": ints(7, 10)}, "batch 0 has slots that are not rows x width"),
        pytest.param(BUDGET, {"kept_events": 17}, "the plan says kept_events 17, counted are 18."),
        pytest.param(BUDGET, {"events_lost": 1}, "the plan says events_lost 1, counted are 0."),
        pytest.param(BUDGET, {"sequences_truncated": 1}, "the plan says sequences_truncated 1, counted are 0."),
        pytest.param(BUDGET, {"batches_over_budget": 1}, "the plan says batches_over_budget 1, counted are 0."),
        pytest.param(JAGGED, {"batch_offsets": ints(0, 3, 5)}, "batch 1 has 12 events, above token_budget 11"),
        pytest.param(JAGGED, {"batch_slots": ints(9, 10)}, "batch 0 has slots that are not its events"),
        pytest.param(JAGGED, {"rows": ints(70_000, 1)}, "batch 0 has more than 65536 rows"),
        pytest.param(
            PACKED, {"event_stop": ints(11, 2, 2, 2, 2)}, "piece 0 .. 11 of sequence 4 is outside its 10 events."
        ),
        pytest.param(
            PACKED, {"pack_offsets": ints(0, 2, 5)}, "pack 0 has 12 events, above the capacity 10 (1 such packs)."
        ),
        pytest.param(PACKED, {"pack_offsets": ints(0, 1, 3, 5)}, "3 packs for 2 rows."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_plan_is_exposed(policy: BatchPolicy, wrong: dict[str, Any], fault: str) -> None:
    plan = plan_epoch(SHORT, policy)
    assert plan.audit().faults == ()
    found = replace(plan, **wrong).audit()
    assert any(line.startswith(fault) for line in found.faults)
    assert not found.ok


def test_a_sequence_that_should_have_been_dropped_is_exposed() -> None:
    policy = BatchPolicy("bucket_rows", rows=4, bucket_edges=(2,), overflow="drop", shuffle=False)
    plan = plan_epoch([1, 2, 9], policy)
    found = replace(plan, order=ints(0, 2)).audit().faults
    assert "1 sequences are in a batch that overflow 'drop' leaves out, the first is 2." in found


def swapped(plan: EpochPlan) -> EpochPlan:
    return replace(
        plan,
        padded_lengths=plan.padded_lengths[::-1],
        batch_slots=plan.batch_slots[::-1],
        order=plan.order[::-1],
        rows=plan.rows[::-1],
    )


def test_ranks_out_of_step_are_exposed() -> None:
    policy = BatchPolicy("bucket_rows", rows=1, bucket_edges=(2, 9), shuffle=False)
    one, two = plans_of([2, 2, 9, 9], policy, 2)
    assert audit_ranks([one, swapped(two)]).faults == ("step 0 has widths 2, 9 on its ranks.",)
    short = replace(
        two, **{name: getattr(two, name)[:1] for name in ("order", "rows", "padded_lengths", "batch_slots")}
    )
    short = replace(short, batch_offsets=two.batch_offsets[:2])
    faults = audit_ranks([one, short]).faults
    assert "ranks have 1 to 2 batches, so that some wait for ever." in faults
    assert "the plan says sequences_dropped 0, counted are 1." in faults
