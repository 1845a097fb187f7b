"""Audits of plans that are broken on purpose: each fault by its name, never an exception, and none of sound plans."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.audit import audit_ranks
from labkit.batching.dealing import Remainder
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.share import Balance
from labkit.batching.strategies import Strategy
from labkit.errors import PolicyError
from tests.batching.draws import FEW, LENGTHS, policies
from tests.batching.rank_checks import plans_of


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def still(strategy: str, **fields: Any) -> BatchPolicy:
    return BatchPolicy(strategy, shuffle=False, **fields)


#: 2 2 2 2 | 9 9, rows 2: two batches of width 2, one of width 9.
SIX = [2, 2, 2, 2, 9, 9]
GRAPH = still("bucket_graph", bucket_edges=(2, 9), token_budget=4, oversize="single_row")  # 2 rows, then 1 row each
STATIC = still("bucket_rows", bucket_edges=(2, 9), rows=2, static_shapes=True)
ROWS = still("bucket_rows", bucket_edges=(2, 9), rows=2)
TIGHT = still("bucket_rows", bucket_edges=(2, 9), rows=2, pad_to="batch_max")
EIGHTS = still("bucket_rows", bucket_edges=(2, 9), rows=2, length_multiple=8)
FULL = still("bucket_rows", bucket_edges=(2, 9), rows=2, drop_last=True)
MAX = still("pad_max", rows=2)
BATCH = still("pad_batch", rows=2)
JAGGED = still("jagged", token_budget=9)  # 2 2 2 2 | 9 | 9
PACKED = still("packed", capacity=9, rows=2)  # 9 | 9 || 2 2 2 2
PAIRS = still("packed", capacity=9, rows=2, max_sequences_per_pack=2)  # 9 | 9 || 2 2 | 2 2
FULL_PACKS = still("packed", capacity=9, rows=1, drop_last=True)


@pytest.mark.parametrize(
    ("policy", "wrong", "fault"),
    [
        # shapes
        (
            STATIC,
            {"rows": ints(2, 3, 2)},
            "the bucket up to length 2 has batches of 2 to 3 rows: static shapes are one.",
        ),
        (GRAPH, {"rows": ints(2, 3, 1, 1)}, "the bucket up to length 2 has batches of 2 to 3 rows: static shapes are "),
        (GRAPH, {"rows": ints(3, 3, 1, 1)}, "batch 0 has 3 rows, its bucket takes 2 (2 such batches)."),
        (ROWS, {"rows": ints(0, 2, 2)}, "batch 0 has 0 rows (1 such batches)."),
        (ROWS, {"padded_lengths": ints(2, 3, 9)}, "batch 1 has width 3, that of its bucket is 2 (1 such batches)."),
        (ROWS, {"rows": ints(2, 3, 2)}, "batch 1 has rows without a sequence (1 such batches)."),
        (JAGGED, {"rows": ints(4, 1, 2)}, "batch 2 has rows without a sequence (1 such batches)."),
        (MAX, {"padded_lengths": ints(9, 2, 9)}, "batch 1 has width 2, that of pad_max is 9 (1 such batches)."),
        (BATCH, {"padded_lengths": ints(2, 9, 9)}, "batch 1 has width 9, that of its longest row is 2 (1 such "),
        (TIGHT, {"padded_lengths": ints(2, 3, 9)}, "batch 1 has width 3, that of its longest row is 2 (1 such "),
        (JAGGED, {"padded_lengths": ints(3, 9, 9)}, "batch 0 has width 3, that of its longest row is 2 (1 such "),
        (PACKED, {"padded_lengths": ints(9, 10)}, "batch 1 has width 10, that of the capacity is 9 (1 such batches)."),
        (EIGHTS, {"padded_lengths": ints(8, 7, 16)}, "batch 1 has width 7, no multiple of length_multiple 8 (1 such "),
        (
            FULL,
            {"order": ints(0, 1, 2, 4, 5), "batch_offsets": ints(0, 2, 3, 5)},
            "batch 1 has 1 sequences of 2: drop_",
        ),
        (FULL_PACKS, {"rows": ints(1, 0, 1)}, "batch 1 has 0 rows of 1: drop_last leaves partial batches out"),
        # packs
        (PACKED, {"pack_offsets": ints(0, 2, 3, 6)}, "pack 0 has 18 events, above the capacity 9 (1 such packs)."),
        (PACKED, {"pack_offsets": ints(0, 0, 1, 6)}, "pack 0 has 0 sequences (1 such packs)."),
        (
            PAIRS,
            {"pack_offsets": ints(0, 1, 2, 3, 6)},
            "pack 3 has 3 sequences, above max_sequences_per_pack 2 (1 such",
        ),
        (PACKED, {"batch_offsets": ints(0, 3, 6)}, "the packs before batch 1 end at 2, the batches before it at 3."),
        (PACKED, {"pack_offsets": None}, "pack_offsets is missing: packed needs it."),
        (PACKED, {"event_start": None}, "event_start is missing: packed needs it."),
        (PACKED, {"event_stop": ints(1)}, "event_stop has 1 numbers for 6 pieces in order."),
        (PACKED, {"pack_offsets": ints(0, 1, 2, 5)}, "pack_offsets ends at 5, order has 6 places."),
        (PACKED, {"pack_offsets": ints(0, 1, 2, 99)}, "pack_offsets ends at 99, order has 6 places."),
        (PACKED, {"pack_offsets": ints(0, 3, 2, 6)}, "pack_offsets decreases from 3 to 2 at position 2."),
        (PACKED, {"pack_offsets": ints(1, 1, 2, 6)}, "pack_offsets begins at 1, not at 0."),
        (ROWS, {"pack_offsets": ints(0, 6)}, "pack_offsets: there are no packs in bucket_rows."),
        # arrays that do not fit one another
        (ROWS, {"batch_offsets": ints(1, 2, 4, 6)}, "batch_offsets begins at 1, not at 0."),
        (ROWS, {"batch_offsets": ints(-2, 2, 4, 6)}, "batch_offsets begins at -2, not at 0."),
        (ROWS, {"batch_offsets": ints(0, 2, 4, 5)}, "batch_offsets ends at 5, order has 6 places."),
        (ROWS, {"batch_offsets": ints(0, 2, 4, 60)}, "batch_offsets ends at 60, order has 6 places."),
        (ROWS, {"batch_offsets": ints(0, 4, 2, 6)}, "batch_offsets decreases from 4 to 2 at position 2."),
        (ROWS, {"batch_offsets": ints()}, "batch_offsets is empty: it begins with 0."),
        (ROWS, {"order": ints(0, 1, 2)}, "batch_offsets ends at 6, order has 3 places."),
        (ROWS, {"order": ints(0, 1, 2, 3, 4, 5, 5)}, "batch_offsets ends at 6, order has 7 places."),
        (ROWS, {"order": ints(0, 1, 2, 3, 4, 77)}, "1 indices do not exist: there are 6 sequences."),
        (ROWS, {"rows": ints(2, 2)}, "rows has 2 numbers for the 3 batches of batch_offsets."),
        (
            ROWS,
            {"padded_lengths": ints(2, 2, 9, 9)},
            "padded_lengths has 4 numbers for the 3 batches of batch_offsets.",
        ),
        (ROWS, {"batch_slots": ints()}, "batch_slots has 0 numbers for the 3 batches of batch_offsets."),
        (ROWS, {"order": np.zeros(6)}, "order is no list of whole numbers: it has 1 dimensions of float64."),
        (ROWS, {"rows": np.ones((3, 1), int)}, "rows is no list of whole numbers: it has 2 dimensions of int64."),
        (ROWS, {"rank": 1}, "rank 1 does not exist: there are 1 ranks, 0 is the first."),
        (ROWS, {"rank": -1}, "rank -1 does not exist: there are 1 ranks, 0 is the first."),
        (ROWS, {"world_size": 2}, "the figures of all ranks are of 1, the plan is one of 2."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_plan_is_exposed(policy: BatchPolicy, wrong: dict[str, Any], fault: str) -> None:
    plan = plan_epoch(SIX, policy)
    assert plan.audit().faults == ()
    found = replace(plan, **wrong).audit()
    assert [line for line in found.faults if line.startswith(fault)], found.faults
    assert not found.ok


def test_coverage_is_counted_over_the_batches() -> None:
    plan = plan_epoch(SIX, ROWS)
    late = replace(plan, batch_offsets=ints(1, 2, 4, 5)).audit()
    assert (late.coverage, late.sequences_dropped, late.events_lost) == (4 / 6, 2, 11)
    assert late.warnings[0].startswith("the figures are of what the plan's arrays have in common")
    twice = replace(plan, batch_offsets=ints(0, 4, 2, 6)).audit()  # 0 1 2 3 | | 2 3 4 5
    assert (twice.coverage, twice.sequences_repeated) == (1, 2)
    assert "2 sequences are in more than one batch, the first is 2." in twice.faults


def test_pieces_that_overlap_are_exposed() -> None:
    plan = plan_epoch([10], still("packed", capacity=5, overflow="split", rows=1))  # 0 .. 5 and 5 .. 10
    assert plan.audit().faults == ()
    later = replace(plan, event_start=np.where(plan.event_start == 5, 4, plan.event_start))
    assert "1 pieces begin inside another piece of their sequence, the first of sequence 0." in later.audit().faults


def test_a_broken_plan_among_several_ranks_is_named() -> None:
    one, two = plans_of(SIX, still("pad_max", rows=1), 2)
    faults = audit_ranks([one, replace(two, rows=two.rows[:1])]).faults
    assert faults == ("rank 1: rows has 1 numbers for the 3 batches of batch_offsets.",)
    assert "rank 7 does not exist: there are 2 ranks, 0 is the first." in replace(one, rank=7).audit().faults


@settings(max_examples=60)
@pytest.mark.parametrize("strategy", Strategy)
@given(
    st.data(),
    LENGTHS | FEW,
    st.integers(1, 4),
    st.sampled_from(Remainder),
    st.sampled_from(Balance),
    st.integers(0, 9),
)
def test_untouched_plans_have_no_fault(
    strategy: Strategy,
    data: st.DataObject,
    lengths: list[int],
    world_size: int,
    remainder: Remainder,
    balance: Balance,
    epoch: int,
) -> None:
    policy = data.draw(policies(lengths, (strategy,)))
    try:
        plans = plans_of(lengths, policy, world_size, remainder=remainder, balance=balance, epoch=epoch)
    except PolicyError:
        return
    assert audit_ranks(plans).faults == ()
    assert [plan.audit().faults for plan in plans] == [()] * world_size


ARRAYS = ("order", "batch_offsets", "padded_lengths", "rows", "batch_slots", "pack_offsets", "event_start")


@settings(max_examples=60)
@pytest.mark.parametrize("strategy", Strategy)
@given(
    st.data(),
    FEW,
    st.dictionaries(st.sampled_from(ARRAYS), st.lists(st.integers(-3, 60), max_size=12), min_size=1, max_size=3),
    st.integers(-1, 2),
)
def test_no_plan_is_too_broken_to_audit(
    strategy: Strategy, data: st.DataObject, lengths: list[int], wrong: dict[str, list[int]], rank: int
) -> None:
    plan = plan_epoch(lengths, data.draw(policies(lengths, (strategy,))))
    broken = replace(plan, rank=rank, **{name: ints(*values) for name, values in wrong.items()})
    found = broken.audit()
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.ok <= (rank == 0)
