"""Negative controls: plans that are wrong on purpose must not pass the checks of the property tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.lengths.histogram import LengthHistogram
from tests.batching import checks

LENGTHS = [2, 2, 2, 2, 10]
# width 2: 10 rows fit 20, so 4 rows, 8 slots; width 10: 2 rows fit, so 1 row, 10 slots
POLICY = BatchPolicy("bucket_budget", bucket_edges=(2, 10), token_budget=20, shuffle=False)
JAGGED = BatchPolicy("jagged", token_budget=12, shuffle=False)  # 2 2 2 2 | 10


def plan(policy: BatchPolicy = POLICY) -> EpochPlan:
    return plan_epoch(LENGTHS, policy)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("policy", [POLICY, JAGGED], ids=["bucket_budget", "jagged"])
def test_the_right_plan_passes(policy: BatchPolicy) -> None:
    checks.assert_sound(plan(policy), LENGTHS)
    checks.assert_agree(what_if(LengthHistogram.from_lengths(LENGTHS), policy), plan(policy))


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"order": ints(0, 1, 2, 2, 4)}, id="one index twice"),
        pytest.param({"order": ints(0, 1, 2, 3, 5)}, id="an index that does not exist"),
        pytest.param({"order": ints(0, 1, 2, 3), "batch_offsets": ints(0, 3, 4)}, id="a sequence lost uncounted"),
        pytest.param({"sequences_dropped": 1}, id="a drop counted that is none"),
        pytest.param({"batch_offsets": ints(0, 5, 5)}, id="an empty batch"),
        pytest.param({"batch_offsets": ints(0, 3, 5)}, id="two buckets in one batch"),
        pytest.param({"padded_lengths": ints(1, 10)}, id="a row longer than its batch"),
        pytest.param({"padded_lengths": ints(3, 10)}, id="a width that is not the bucket's"),
        pytest.param({"rows": ints(11, 1)}, id="a batch over the budget"),
        pytest.param({"rows": ints(3, 1)}, id="fewer rows than indices"),
        pytest.param({"batch_slots": ints(7, 10)}, id="slots that are not rows x width"),
        pytest.param({"kept_events": 17}, id="an event lost uncounted"),
        pytest.param({"events_lost": 1}, id="an event lost that is there"),
        pytest.param({"sequences_truncated": 1}, id="a cut counted that is none"),
        pytest.param({"batches_over_budget": 1}, id="an overshoot counted that is none"),
    ],
)
def test_a_wrong_plan_is_caught(wrong: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        checks.assert_sound(replace(plan(), **wrong), LENGTHS)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"batch_offsets": ints(0, 2, 5)}, id="a batch over the events"),
        pytest.param({"padded_lengths": ints(2, 9)}, id="a longest row that is not"),
        pytest.param({"batch_slots": ints(9, 10)}, id="slots that are not the events"),
    ],
)
def test_a_wrong_jagged_plan_is_caught(wrong: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        checks.assert_sound(replace(plan(JAGGED), **wrong), LENGTHS)


def test_a_jagged_batch_of_too_many_rows_is_caught() -> None:
    with pytest.raises(AssertionError):
        checks.assert_sound(replace(plan(JAGGED), policy=replace(JAGGED, max_rows=3)), LENGTHS)


@pytest.mark.parametrize("field", ["events_lost", "sequences_truncated", "sequences_dropped", "batches_over_budget"])
def test_a_what_if_that_differs_from_the_plan_is_caught(field: str) -> None:
    scored = what_if(LengthHistogram.from_lengths(LENGTHS), POLICY)
    with pytest.raises(AssertionError):
        checks.assert_agree(scored, replace(plan(), **{field: 1}))


def test_a_batch_too_many_is_caught() -> None:
    scored = what_if(LengthHistogram.from_lengths(LENGTHS), POLICY)
    with pytest.raises(AssertionError):
        checks.assert_agree(replace(scored, batches=3), plan())
