from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.strategies import Strategy
from labkit.batching.what_if import what_if
from labkit.experiments.lineup import EdgesBy, Lineup, policies
from labkit.experiments.scores import ranked, score
from labkit.lengths.histogram import LengthHistogram

LENGTHS = LengthHistogram.from_lengths(np.array([1, 2, 3, 3, 40, 400]))


def test_scores_are_the_what_ifs_of_the_lineup():
    board = score(LENGTHS, Lineup(buckets=2))
    for s, policy in zip(board.scores, policies(LENGTHS, Lineup(buckets=2)), strict=True):
        assert s.policy == policy
        assert s.what_if == what_if(LENGTHS, policy)
        assert s.error is None


def test_one_that_does_not_fit_does_not_stop_the_others():
    board = score(LENGTHS, Lineup(token_budget=399))
    assert board[Strategy.PAD_MAX].error is None
    assert "bucket width 400 is above token_budget 399" in (board[Strategy.BUCKET_BUDGET].error or "")
    assert board[Strategy.BUCKET_BUDGET].policy is not None
    assert board[Strategy.BUCKET_ROWS].error is None
    assert board.groups == board[Strategy.BUCKET_ROWS].what_if.groups


def test_edges_that_cannot_be_found_are_an_error_of_the_bucket_strategies_alone():
    board = score(LENGTHS, Lineup(buckets=0))
    assert board.edges is None
    errors = {s.strategy: s.error for s in board.scores}
    assert errors[Strategy.BUCKET_ROWS] == "buckets must be 1 or more: got 0."
    assert errors[Strategy.PAD_MAX] is errors[Strategy.JAGGED] is None
    assert board.groups == ()


def test_ranked_from_least_work_per_event_to_most_with_misfits_last():
    order = [s.strategy for s in ranked(score(LENGTHS, Lineup(token_budget=399)).scores)]
    assert order[:3] == ["bucket_rows", "rnn_packed", "packed"]  # 0, 0 and 44 %
    assert order[-5:] == ["bucket_budget", "bucket_graph", "jagged", "segmented", "sparse"]


def test_each_strategy_gets_only_the_fields_it_uses():
    made = {p.strategy: p for p in policies(LENGTHS, Lineup(buckets=2, max_length=40, pad_to="batch_max"))}
    assert made[Strategy.PAD_MAX].max_length is None  # pad_max never cuts
    assert made[Strategy.PAD_MAX].bucket_edges is None
    assert made[Strategy.BUCKET_ROWS].pad_to == "batch_max"
    assert made[Strategy.BUCKET_GRAPH].pad_to == "edge"  # a graph replays one shape


def test_splitting_is_for_packs_and_an_error_to_buckets():
    made = {p.strategy: p for p in policies(LENGTHS, Lineup(overflow="split", capacity=9, max_sequences_per_pack=4))}
    assert made[Strategy.PACKED].overflow == "split"
    assert (made[Strategy.PACKED].capacity, made[Strategy.PACKED].max_sequences_per_pack) == (9, 4)
    assert {made[key].overflow for key in (Strategy.BUCKET_ROWS, Strategy.BUCKET_GRAPH)} == {"error"}


@pytest.mark.parametrize("how", list(EdgesBy))
def test_edges_are_computed_on_capped_lengths(how):
    edges = Lineup(buckets=3, edges_by=how, max_length=40).edges(LENGTHS)
    assert edges.edges[-1] == 40
