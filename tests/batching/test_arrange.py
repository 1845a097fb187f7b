"""The array work of a plan where its own seams are: chunks, tables, small types."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching import arrange
from labkit.batching.groups import Groups, resolve_groups
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.lengths.histogram import LengthHistogram
from tests.batching.checks import assert_agree, assert_each_index_at_most_once


def groups_of(lengths: np.ndarray, edges: tuple[int, ...], overflow: str = "error") -> Groups:
    policy = BatchPolicy("bucket_rows", bucket_edges=edges, overflow=overflow)
    return resolve_groups(policy, LengthHistogram.from_lengths(lengths))


# --- by_group


def test_indices_are_grouped_in_the_given_order_without_a_shuffle() -> None:
    lengths = np.array([9, 1, 5, 2, 0, 30])
    order, starts = arrange.by_group(lengths, groups_of(lengths, (2, 9), "drop"), None)
    assert order.tolist() == [1, 3, 4, 0, 2]  # 30 is dropped
    assert starts.tolist() == [0, 3, 5]


def test_a_shuffle_stays_inside_its_group() -> None:
    lengths = np.tile([9, 1, 5, 2], 50)
    order, starts = arrange.by_group(lengths, groups_of(lengths, (2, 9)), np.random.default_rng(0))
    assert starts.tolist() == [0, 100, 200]
    assert (lengths[order[:100]] <= 2).all()
    assert (lengths[order[100:]] > 2).all()
    assert sorted(order.tolist()) == list(range(200))


@pytest.mark.parametrize("edges", [3, 300, 70_000], ids=["8 bits", "16 bits", "64 bits"])
def test_any_number_of_buckets_finds_its_type(edges: int) -> None:
    lengths = np.random.default_rng(0).integers(0, edges + 1, 2_000)
    groups = groups_of(lengths, tuple(range(1, edges + 1)))
    order, starts = arrange.by_group(lengths, groups, None)
    np.testing.assert_array_equal(order, np.argsort(np.maximum(lengths, 1), kind="stable"))
    assert starts[-1] == lengths.size


def test_lengths_too_long_for_a_table_are_bisected() -> None:
    lengths = np.array([2**31 - 1, 5, 2**30])
    order, starts = arrange.by_group(lengths, groups_of(lengths, (5, 2**30, 2**31 - 1)), None)
    assert order.tolist() == [1, 2, 0]
    assert starts.tolist() == [0, 1, 2, 3]


# --- gather and cut


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=12))
def test_gather_concatenates_the_runs(runs: list[tuple[int, int]]) -> None:
    order = np.arange(100, 150)
    low = np.array([start for start, _ in runs], dtype=np.int64)
    high = low + np.array([size for _, size in runs], dtype=np.int64)
    wanted = [x for a, b in zip(low, high, strict=True) for x in order[a:b].tolist()]
    assert arrange.gather(order, low, high).tolist() == wanted


def test_runs_longer_than_a_chunk_are_gathered_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrange, "CHUNK", 4)
    order = np.arange(30)
    low, high = np.array([20, 0, 3, 7]), np.array([30, 3, 7, 8])
    assert arrange.gather(order, low, high).tolist() == [*range(20, 30), *range(8)]


@pytest.mark.parametrize("chunk", [1, 2, 7])
@pytest.mark.parametrize("drop_last", [True, False])
def test_plans_do_not_depend_on_the_size_of_a_chunk(
    chunk: int, drop_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = [(k * k) % 23 for k in range(50)]
    policy = BatchPolicy(
        "bucket_rows", rows=4, bucket_edges=(3, 9), overflow="truncate", drop_last=drop_last, bucket_widths=(2, 9)
    )
    wanted = plan_epoch(lengths, policy)
    monkeypatch.setattr(arrange, "CHUNK", chunk)
    found = plan_epoch(lengths, policy)
    assert found.order.tolist() == wanted.order.tolist()
    assert (found.kept_events, found.sequences_truncated) == (wanted.kept_events, wanted.sequences_truncated)


def test_more_sequences_than_a_chunk_agree_with_the_what_if() -> None:
    lengths = np.minimum(np.random.default_rng(0).zipf(1.7, 2_500_000), 900).astype(np.int32)
    policy = BatchPolicy("bucket_graph", bucket_edges=(1, 4, 30, 900), token_budget=4096, row_multiple=8)
    plan = plan_epoch(lengths, policy)
    assert_agree(what_if(LengthHistogram.from_lengths(lengths), policy), plan)
    assert np.bincount(plan.order, minlength=lengths.size).max() == 1
    assert plan.order.size == lengths.size
    sizes = np.diff(plan.batch_offsets)
    assert (np.maximum.reduceat(lengths[plan.order], plan.batch_offsets[:-1]) <= plan.padded_lengths).all()
    assert (sizes <= plan.rows).all()
    assert (plan.rows * plan.padded_lengths <= 4096).all()


# --- edges of the range


def test_the_longest_legal_length_is_planned_like_any_other() -> None:
    lengths = [2**31 - 1, 0, 7]
    for policy in (
        BatchPolicy("pad_max", rows=2),
        BatchPolicy("bucket_rows", rows=2, bucket_edges=(7, 2**31 - 1)),
        BatchPolicy("bucket_budget", bucket_edges=(7, 2**31 - 1), token_budget=2**32, length_multiple=8),
        BatchPolicy("jagged", token_budget=2**31),
    ):
        plan = plan_epoch(lengths, policy)
        assert_each_index_at_most_once(plan, 3)
        assert_agree(what_if(LengthHistogram.from_lengths(lengths), policy), plan)
        assert plan.kept_events == 2**31 + 6


@pytest.mark.parametrize("most", [2**31, 2**62])
def test_rows_and_budgets_beyond_all_data_make_one_batch(most: int) -> None:
    lengths = [3, 1, 2]
    for policy in (
        BatchPolicy("pad_max", rows=most),
        BatchPolicy("pad_batch", rows=most),
        BatchPolicy("bucket_rows", rows=most, bucket_edges=(5,), static_shapes=True),
        BatchPolicy("bucket_budget", bucket_edges=(5,), token_budget=most, row_multiple=most),
        BatchPolicy("bucket_graph", bucket_edges=(5,), token_budget=most),
    ):
        plan = plan_epoch(lengths, policy)
        assert_agree(what_if(LengthHistogram.from_lengths(lengths), policy), plan)
        assert (len(plan), plan.rows.tolist()) == (1, [3])
