"""what_if, plan_epoch and the rules written as loops say the same, for every strategy and every policy field."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import STRATEGIES, Layout, Strategy
from labkit.batching.what_if import FIGURES, what_if
from labkit.errors import LengthsError
from labkit.lengths.histogram import LengthHistogram
from tests.batching import naive
from tests.batching.checks import assert_agree, assert_sound, exact_fields, shapes_of
from tests.batching.draws import FEW, LENGTHS, policies

PADDED = tuple(s for s in Strategy if STRATEGIES[s].layout is Layout.PADDED)
MANY = settings(max_examples=200)


@MANY
@pytest.mark.parametrize("strategy", Strategy)
@given(st.data(), LENGTHS | FEW, st.integers(0, 3))
def test_a_plan_is_sound_and_what_if_equals_it(
    strategy: Strategy, data: st.DataObject, lengths: list[int], epoch: int
) -> None:
    policy = data.draw(policies(lengths, (strategy,)))
    plan = plan_epoch(lengths, policy, seed=7, epoch=epoch)
    assert_sound(plan, lengths)
    assert_agree(what_if(LengthHistogram.from_lengths(lengths), policy), plan)


@MANY
@pytest.mark.parametrize("strategy", PADDED)
@given(st.data(), LENGTHS | FEW)
def test_both_equal_the_rules_written_as_loops(strategy: Strategy, data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths, (strategy,)))
    wanted = naive.epoch(lengths, policy)
    plan, scored = plan_epoch(lengths, policy), what_if(LengthHistogram.from_lengths(lengths), policy)
    for found in (plan, scored):
        assert found.batches == wanted.batches
        assert found.ghost_rows == wanted.ghost_rows
        assert found.sequences_dropped == wanted.sequences_dropped
        if wanted.kept_events is not None:
            assert found.kept_events == wanted.kept_events
            assert found.sequences_truncated == wanted.sequences_truncated
        if "slots" in exact_fields(scored):
            assert found.slots == wanted.slots


@MANY
@given(st.data(), LENGTHS | FEW)
def test_permuted_lengths_give_the_same_multiset_of_shapes(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths, tuple(s for s in PADDED if s != "pad_batch")))
    if policy.pad_to == "batch_max":
        return  # the widths depend on the shuffle
    permuted = data.draw(st.permutations(lengths))
    assert shapes_of(plan_epoch(lengths, policy)) == shapes_of(plan_epoch(permuted, policy, seed=3))


@MANY
@given(st.data(), LENGTHS)
def test_bounds_called_upper_are_never_exceeded(data: st.DataObject, lengths: list[int]) -> None:
    policy = data.draw(policies(lengths))
    plan, scored = plan_epoch(lengths, policy), what_if(LengthHistogram.from_lengths(lengths), policy)
    assert plan.largest_batch_slots <= scored.largest_batch_slots
    if "batches" in exact_fields(scored):  # of an estimate, no bound
        assert plan.shapes <= scored.shapes


ALL = set(FIGURES)
NOT_BY_CHANCE = ALL - {"padding_ratio", "kept_events", "events_lost", "sequences_truncated"}
_ROWS = {"slots", "shapes", "largest_batch_slots"}


@pytest.mark.parametrize(
    ("fields", "exact"),
    [
        ({"strategy": "pad_max"}, ALL),
        ({"strategy": "bucket_rows", "bucket_edges": (4, 9)}, ALL),
        ({"strategy": "bucket_budget", "bucket_edges": (4, 9)}, ALL),
        ({"strategy": "bucket_graph", "bucket_edges": (4, 9)}, ALL),
        ({"strategy": "bucket_rows", "bucket_edges": (4, 9), "rows": 2, "drop_last": True}, NOT_BY_CHANCE),
        ({"strategy": "pad_batch"}, ALL - {"slots", "padding_ratio", "shapes", "largest_batch_slots"}),
        ({"strategy": "jagged", "token_budget": 12}, ALL - {"batches", "shapes", "largest_batch_slots"}),
        ({"strategy": "jagged", "token_budget": 999}, ALL - {"shapes", "largest_batch_slots"}),
        ({"strategy": "segmented", "token_budget": 12}, ALL - {"batches", "shapes", "largest_batch_slots"}),
        ({"strategy": "sparse", "token_budget": 12}, ALL - {"batches", "shapes", "largest_batch_slots"}),
        ({"strategy": "rnn_packed"}, ALL),  # all in one batch
        ({"strategy": "rnn_packed", "rows": 2}, ALL - {"shapes", "largest_batch_slots"}),
        ({"strategy": "rnn_packed", "rows": 2, "drop_last": True}, NOT_BY_CHANCE - _ROWS | {"padding_ratio"}),
        ({"strategy": "packed", "rows": 2}, ALL),
        # packs 9 | 5 + 4 | 4 + 1: one of the three is left out
        ({"strategy": "packed", "rows": 2, "drop_last": True}, NOT_BY_CHANCE - {"sequences_dropped"}),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_what_does_not_depend_on_the_shuffle_is_called_exact(fields: dict[str, object], exact: set[str]) -> None:
    scored = what_if(LengthHistogram.from_lengths([1, 4, 4, 5, 9]), BatchPolicy(**fields))
    assert set(exact_fields(scored)) == exact
    assert set(scored.provenance) == ALL | ({"packs"} if scored.packs is not None else set())
    assert all(scored.reason[name] for name in ALL - exact)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i4", np.float64])
@pytest.mark.parametrize("cap", [None, 50, 300])
def test_plans_do_not_depend_on_the_type_of_the_lengths(strategy: Strategy, dtype: str, cap: int | None) -> None:
    # 300 is above what int8 and uint8 can hold: nothing is cut
    lengths = [3, 100, 7, 0, 5, 100]
    fields = {"rows": 2, "bucket_edges": (5, 1000), "token_budget": 4000, "max_length": cap, "pad_to": "batch_max"}
    if strategy is Strategy.BUCKET_GRAPH:
        del fields["pad_to"]
    policy = BatchPolicy(strategy, **{k: v for k, v in fields.items() if k in STRATEGIES[strategy].fields})
    plan, wanted = plan_epoch(np.array(lengths, dtype=dtype), policy), plan_epoch(lengths, policy)
    assert_sound(plan, lengths)
    np.testing.assert_array_equal(plan.order, wanted.order)
    np.testing.assert_array_equal(plan.padded_lengths, wanted.padded_lengths)


@pytest.mark.parametrize("strategy", Strategy)
def test_no_sequences_at_all_are_refused(strategy: Strategy) -> None:
    policy = BatchPolicy(strategy, bucket_edges=(8,))
    with pytest.raises(LengthsError, match=r"^lengths are empty: at least one sequence is needed\.$"):
        plan_epoch([], policy)
    with pytest.raises(LengthsError, match=r"^lengths are empty: at least one sequence is needed\.$"):
        LengthHistogram.from_lengths([])


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("sequences", [1, 2, 50])
def test_empty_histories_have_no_events(strategy: Strategy, sequences: int) -> None:
    # a padded width is at least 1, so N rows of length 0 are N slots, and a pack that holds them all is one;
    # rows without padding are no slots
    lengths = [0] * sequences
    policy = BatchPolicy(strategy, rows=4, bucket_edges=(1,), token_budget=64)
    plan = plan_epoch(lengths, policy)
    assert_sound(plan, lengths)
    assert_agree(what_if(LengthHistogram.from_lengths(lengths), policy), plan)
    assert plan.kept_events == 0
    slots = {Layout.PADDED: sequences, Layout.PACKED_ROWS: 1}.get(policy.spec.layout, 0)
    assert plan.slots == slots
    assert plan.padding_ratio == (slots > 0)
