"""Indices that say which events go to which pack, on their way to workers."""

from __future__ import annotations

import pickle

import numpy as np

from labkit.batching.pieces import PieceIndex, batch_indices
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy


def fields(piece: int) -> tuple[int, int, int, int]:
    assert isinstance(piece, PieceIndex)
    return int(piece), piece.row, piece.start, piece.stop


def test_a_piece_is_an_int_that_carries_its_place() -> None:
    piece = PieceIndex(7, row=2, start=1, stop=5)
    assert piece == 7
    assert np.arange(9)[piece] == 7
    assert repr(piece) == "PieceIndex(7, row=2, start=1, stop=5)"


def test_a_piece_crosses_processes_whole() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(PieceIndex(7, 2, 1, 5), protocol))
        assert fields(found) == (7, 2, 1, 5)


def test_batches_of_a_plan_of_packs() -> None:
    # packs 4 | 3 + 1 | 2 + 1 (C16), two a batch: rows start at 0 in each batch
    policy = BatchPolicy("packed", capacity=4, overflow="split", rows=2, shuffle=False)
    plan = plan_epoch([5, 2, 3, 1], policy)
    assert [fields(piece) for piece in batch_indices(plan, 0)] == [(0, 0, 1, 5), (2, 1, 0, 3), (3, 1, 0, 1)]
    assert [fields(piece) for piece in batch_indices(plan, 1)] == [(1, 0, 0, 2), (0, 0, 0, 1)]


def test_other_strategies_have_plain_ints() -> None:
    plan = plan_epoch([5, 2], BatchPolicy("pad_max", shuffle=False))
    assert [type(index) for index in batch_indices(plan, 0)] == [int, int]


def test_ranks_have_rows_of_their_own_from_zero() -> None:
    policy = BatchPolicy("packed", capacity=4, rows=2)
    lengths = np.random.default_rng(0).integers(0, 5, 60)
    for rank in range(3):
        plan = plan_epoch(lengths, policy, rank=rank, world_size=3)
        for i in range(len(plan)):
            rows = [fields(piece)[1] for piece in batch_indices(plan, i)]
            assert sorted(set(rows)) == list(range(int(plan.rows[i])))
