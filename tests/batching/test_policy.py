"""BatchPolicy: what is accepted, what is refused and with which words, and that unused fields are left alone."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from labkit.batching.policy import BatchOrder, BatchPolicy, Overflow, Oversize, PadTo
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from labkit.errors import EdgesError, LabkitError, PolicyError

EDGES = {"bucket_edges": (3, 5, 6)}
BUCKETS = [s for s in Strategy if STRATEGIES[s].batching is Batching.BUCKETS]


def refusal(strategy: str, **values: object) -> str:
    with pytest.raises((PolicyError, EdgesError)) as caught:
        BatchPolicy(strategy, **values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- what is accepted


def test_keys_numpy_integers_and_lists_become_plain_types() -> None:
    policy = BatchPolicy(
        "bucket_budget",
        bucket_edges=np.array([3, 5]),
        bucket_widths=[np.int64(2), np.int32(5)],
        token_budget=np.int64(100),
        overflow="truncate",
        oversize="single_row",
        pad_to="batch_max",
        batch_order="grouped",
        shuffle=np.True_,
    )
    assert policy.bucket_edges == (3, 5)
    assert policy.bucket_widths == (2, 5)
    assert type(policy.bucket_edges[0]) is type(policy.token_budget) is int
    assert policy.overflow is Overflow.TRUNCATE
    assert policy.oversize is Oversize.SINGLE_ROW
    assert policy.pad_to is PadTo.BATCH_MAX
    assert policy.batch_order is BatchOrder.GROUPED
    assert policy.shuffle is True


def test_a_policy_is_frozen_and_equal_by_value() -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=[3, 5])
    assert policy == BatchPolicy(Strategy.BUCKET_ROWS, bucket_edges=(3, 5))
    assert hash(policy) == hash(BatchPolicy(Strategy.BUCKET_ROWS, bucket_edges=(3, 5)))
    assert replace(policy, rows=7).rows == 7
    with pytest.raises(FrozenInstanceError):
        policy.rows = 3  # type: ignore[misc]


@pytest.mark.parametrize("strategy", Strategy)
def test_every_field_survives_json(strategy: Strategy) -> None:
    policy = BatchPolicy(strategy, **(EDGES | {"max_length": 7}))
    plain = json.loads(json.dumps(policy.to_dict(), allow_nan=False))
    assert set(plain) == {f.name for f in fields(BatchPolicy)}
    assert BatchPolicy(**plain) == policy


def test_fields_that_are_not_used_are_kept_in_plain_types_so_that_policies_hash_and_store() -> None:
    policy = BatchPolicy("pad_max", bucket_edges=np.array([9, 3]), bucket_widths=[0, 1], token_budget=np.int64(-1))
    assert (policy.bucket_edges, policy.bucket_widths, policy.token_budget) == ((9, 3), (0, 1), -1)
    assert BatchPolicy(**json.loads(json.dumps(policy.to_dict()))) == policy
    assert {policy: 1}[policy] == 1


@pytest.mark.parametrize(
    ("strategy", "given", "resolved"),
    [
        ("bucket_graph", None, True),
        ("bucket_graph", True, True),
        ("bucket_budget", None, False),
        ("bucket_budget", True, True),
        ("bucket_rows", True, True),
        ("bucket_rows", False, False),
    ],
)
def test_static_shapes_are_on_for_graphs_and_off_elsewhere(strategy: str, given: bool | None, resolved: bool) -> None:
    assert BatchPolicy(strategy, **EDGES, static_shapes=given).has_static_shapes is resolved


# --- what is refused, word for word


def test_an_unknown_strategy_names_those_that_exist() -> None:
    assert refusal("bucket") == (
        "strategy 'bucket' does not exist: use one of pad_max, pad_recent, pad_batch, bucket_rows, bucket_budget, "
        "bucket_graph, packed, rnn_packed, jagged, segmented, sparse."
    )


@pytest.mark.parametrize("strategy", BUCKETS)
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((0, 5), "bucket_edges[0] must be 1 or more: got 0."),
        ((3, -5), "bucket_edges[1] must be 1 or more: got -5."),
        ((3, 9, 5), "bucket_edges must be strictly increasing: 5 follows 9 at position 2. Sort them."),
        ((3, 5, 5), "bucket_edges must be strictly increasing: 5 is repeated (positions 1 and 2)."),
        ((3, 5.5), "bucket_edges[1] must be a whole number: got 5.5 (float)."),
        ((3, 5.0), "bucket_edges[1] must be a whole number: got 5.0 (float)."),
        ((3, float("nan")), "bucket_edges[1] must be a whole number: got nan (float)."),
        ((3, "5"), "bucket_edges[1] must be a whole number: got '5' (str)."),
        ((True, 5), "bucket_edges[0] must be a whole number: got True (bool)."),
        ((3, None), "bucket_edges[1] must be a whole number: got None (NoneType)."),
        ((3, 2**31), "bucket_edges[1] must be at most 2147483647: got 2147483648."),
        ((), "bucket_edges are empty: give at least one edge, the longest length."),
        ("3,5", "bucket_edges must be a list of whole numbers: got '3,5'."),
        (5, "bucket_edges must be a list of whole numbers: got 5."),
    ],
    ids=str,
)
def test_edges_that_break_the_rule_are_refused(strategy: Strategy, edges: object, message: str) -> None:
    assert refusal(strategy, bucket_edges=edges) == message


@pytest.mark.parametrize("strategy", BUCKETS)
def test_missing_edges_come_with_the_call_that_makes_them(strategy: Strategy) -> None:
    assert refusal(strategy) == (
        f"strategy {strategy} needs bucket_edges: pass optimal_edges(histogram, buckets).edges."
    )


@pytest.mark.parametrize("strategy", BUCKETS)
@pytest.mark.parametrize(
    ("widths", "message"),
    [
        ((3, 6, 6), "bucket_widths[1] = 6 is above its edge 5: a width is at most its edge."),
        ((3, 5), "bucket_widths need one width per edge: got 2 widths for 3 edges."),
        ((), "bucket_widths need one width per edge: got 0 widths for 3 edges."),
        ((3, 0, 6), "bucket_widths[1] must be 1 or more: got 0."),
        ((3, 4.5, 6), "bucket_widths[1] must be a whole number: got 4.5 (float)."),
    ],
    ids=str,
)
def test_widths_that_do_not_fit_the_edges_are_refused(strategy: Strategy, widths: object, message: str) -> None:
    assert refusal(strategy, **EDGES, bucket_widths=widths) == message


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("field", ["rows", "token_budget", "max_rows", "row_multiple", "length_multiple", "max_length"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "{} must be 1 or more: got 0."),
        (-3, "{} must be 1 or more: got -3."),
        (2.5, "{} must be a whole number: got 2.5 (float)."),
        ("8", "{} must be a whole number: got '8' (str)."),
        (True, "{} must be a whole number: got True (bool)."),
    ],
    ids=str,
)
def test_numbers_are_whole_and_positive_where_they_are_used(
    strategy: Strategy, field: str, value: object, message: str
) -> None:
    if field in STRATEGIES[strategy].fields:
        assert refusal(strategy, **(EDGES | {field: value})) == message.format(field)
    else:  # a field that the strategy does not use is not looked at
        assert getattr(BatchPolicy(strategy, **(EDGES | {field: value})), field) == value


@pytest.mark.parametrize("field", ["length_multiple", "max_length"])
def test_lengths_and_their_multiples_have_a_largest_value(field: str) -> None:
    assert refusal("pad_recent", **{field: 2**31}) == f"{field} must be at most 2147483647: got 2147483648."


@pytest.mark.parametrize("field", ["rows", "token_budget", "row_multiple"])
def test_counts_have_a_largest_value(field: str) -> None:
    strategy = "bucket_rows" if field == "rows" else "bucket_budget"
    assert refusal(strategy, **(EDGES | {field: 2**62 + 1})) == f"{field} must be at most {2**62}: got {2**62 + 1}."


@pytest.mark.parametrize("field", ["rows", "length_multiple"])
def test_none_is_no_number(field: str) -> None:
    assert refusal("pad_max", **{field: None}) == f"{field} must be a whole number: got None (NoneType)."


@pytest.mark.parametrize(
    ("field", "keys"),
    [
        ("overflow", "error, truncate, drop, split"),
        ("oversize", "error, single_row"),
        ("pad_to", "edge, batch_max"),
        ("batch_order", "shuffled, grouped"),
    ],
)
def test_an_unknown_key_names_those_that_exist(field: str, keys: str) -> None:
    assert refusal("bucket_budget", **(EDGES | {field: "best"})) == f"{field} 'best' does not exist: use one of {keys}."
    assert getattr(BatchPolicy("jagged", **{field: "best"}), field) == "best"  # not used there


@pytest.mark.parametrize("strategy", BUCKETS)
def test_only_packs_take_the_pieces_of_a_split_sequence(strategy: str) -> None:
    line = f"overflow 'split' is for packed; {strategy} takes 'error', 'truncate' or 'drop'."
    assert refusal(strategy, **EDGES, overflow="split") == line
    assert BatchPolicy("packed", overflow="split").overflow == "split"
    assert BatchPolicy("jagged", overflow="split").overflow == "split"  # not used there


@pytest.mark.parametrize("field", ["capacity", "max_sequences_per_pack"])
def test_what_packs_hold_is_a_whole_number_or_none(field: str) -> None:
    assert refusal("packed", **{field: 0}) == f"{field} must be 1 or more: got 0."
    assert refusal("packed", **{field: 2.5}) == f"{field} must be a whole number: got 2.5 (float)."
    assert getattr(BatchPolicy("packed", **{field: None}), field) is None


@pytest.mark.parametrize("field", ["shuffle", "drop_last", "static_shapes"])
@pytest.mark.parametrize(("value", "said"), [(1, "1 (int)"), ("no", "'no' (str)"), (0.0, "0.0 (float)")])
def test_flags_are_true_or_false(field: str, value: object, said: str) -> None:
    assert refusal("bucket_budget", **(EDGES | {field: value})) == f"{field} must be true or false: got {said}."


def test_a_graph_without_static_shapes_is_refused() -> None:
    assert refusal("bucket_graph", **EDGES, static_shapes=False) == (
        "bucket_graph needs static_shapes: a CUDA graph replays one shape. Use bucket_budget without."
    )


@pytest.mark.parametrize(
    ("strategy", "static"), [("bucket_graph", None), ("bucket_budget", True), ("bucket_rows", True)]
)
def test_shapes_cannot_be_static_and_vary(strategy: str, static: bool | None) -> None:
    assert refusal(strategy, **EDGES, static_shapes=static, pad_to="batch_max") == (
        "pad_to='batch_max' makes shapes vary, static_shapes keeps them: choose one of the two."
    )


@pytest.mark.parametrize("strategy", ["pad_max", "pad_recent", "pad_batch", "jagged"])
def test_strategies_without_buckets_do_not_look_at_edges(strategy: str) -> None:
    policy = BatchPolicy(strategy, bucket_edges=(9, 3), bucket_widths=(0,), static_shapes="maybe", pad_to="batch_max")
    assert policy.bucket_edges == (9, 3)


def test_refusals_are_value_errors_and_labkit_errors() -> None:
    for kind in (PolicyError, EdgesError):
        assert issubclass(kind, ValueError)
        assert issubclass(kind, LabkitError)


# --- the table of strategies

_ALL_BUCKETS = {"bucket_edges", "bucket_widths", "max_length", "overflow", "pad_to"}


@pytest.mark.parametrize(
    ("strategy", "uses"),
    [
        ("pad_max", {"rows"}),
        ("pad_recent", {"rows", "max_length"}),
        ("pad_batch", {"rows", "max_length"}),
        ("bucket_rows", {"rows"} | _ALL_BUCKETS),
        ("bucket_budget", {"token_budget", "oversize", "row_multiple"} | _ALL_BUCKETS),
        ("bucket_graph", {"token_budget", "oversize", "row_multiple"} | _ALL_BUCKETS),
        ("jagged", {"token_budget", "max_rows", "max_length"}),
    ],
)
def test_strategies_use_the_fields_of_the_table(strategy: str, uses: set[str]) -> None:
    general = {"shuffle", "drop_last", "length_multiple", "batch_order", "static_shapes"}
    assert set(STRATEGIES[Strategy(strategy)].fields) - general == uses
    assert STRATEGIES[Strategy(strategy)].fields <= {f.name for f in fields(BatchPolicy)}


def test_the_table_lists_every_strategy_once() -> None:
    assert list(STRATEGIES) == list(Strategy)
    assert all(key is spec.strategy and spec.title and spec.launch for key, spec in STRATEGIES.items())
