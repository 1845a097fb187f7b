from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from labkit.batching.policy import BatchPolicy
from labkit.errors import KernelArgumentError, PolicyError, ShapeError
from labkit.gpu.launch_config import LaunchConfig
from labkit.layouts.checks import check_batch
from labkit.layouts.collate import collate
from labkit.layouts.jagged_batch import JaggedBatch
from labkit.layouts.segmented import SegmentedBatch, segmented
from labkit.lengths.histogram import LengthHistogram

#: Rows of 1, 0, 3, 40 and 2 events, and a ghost row: one of each regime under these thresholds.
OFFSETS = torch.tensor([0, 1, 1, 4, 44, 46, 46])
CONFIG = LaunchConfig(1, 2, 8)
VALUES = torch.arange(46 * 3, dtype=torch.float32).sin().view(46, 3)


def batch() -> SegmentedBatch:
    return segmented(JaggedBatch(VALUES, OFFSETS, 5), CONFIG)


def rows(values: Tensor) -> list[Tensor]:
    return list(values.split(OFFSETS.diff().tolist()))


def test_the_rows_are_binned_heaviest_first() -> None:
    # room for 46 // 9 = 5 giants: row 3, in 5 pieces of 8; row 2 long, 4 medium; row 0, then 1 and 5, which are empty
    assert batch().bins.tolist() == [1, 2, 3, 5, 0, *[5] * 5, 3, 2, 4, 0, 1, 5]


def test_pool_is_sum_mean_and_max_of_each_row() -> None:
    own = batch()
    for mode, of_row in (("sum", lambda r: r.sum(0)), ("mean", lambda r: r.mean(0)), ("max", lambda r: r.amax(0))):
        expected = torch.stack([of_row(row) if len(row) else torch.zeros(3) for row in rows(VALUES)])
        torch.testing.assert_close(own.pool(VALUES, mode), expected)


def test_embedding_pool_is_embedding_bag() -> None:
    table, ids = VALUES[:7], torch.arange(46) % 7
    for mode in ("sum", "mean", "max"):
        expected = functional.embedding_bag(ids, table, OFFSETS, mode=mode, include_last_offset=True)
        torch.testing.assert_close(batch().embedding_pool(table, ids, mode=mode), expected)
    weights = torch.linspace(-1, 1, 46)
    expected = functional.embedding_bag(
        ids, table, OFFSETS, mode="sum", include_last_offset=True, per_sample_weights=weights
    )
    torch.testing.assert_close(batch().embedding_pool(table, ids, weights, "sum"), expected)


def test_attend_is_a_softmax_in_each_row_and_looks_at_no_masked_event() -> None:
    scores, values = VALUES[:, 0].clone(), VALUES.clone()
    scores[2], values[2] = -torch.inf, torch.nan
    found = batch().attend(scores, values)
    kept = values.masked_fill(scores.isinf()[:, None], 0)
    pairs = zip(rows(scores), rows(kept), strict=True)
    expected = torch.stack([s.softmax(0) @ v if len(s) else torch.zeros(3) for s, v in pairs])
    torch.testing.assert_close(found, expected)


def test_spread_puts_the_values_of_a_row_at_all_its_events_and_its_gradient_is_a_sum() -> None:
    values = torch.arange(6.0)[:, None].requires_grad_()
    found = batch().spread(values, 46)
    assert found[:, 0].tolist() == [0, 2, 2, 2, *[3] * 40, 4, 4]
    (grad,) = torch.autograd.grad(found.sum(), values)
    assert grad[:, 0].tolist() == [1, 0, 3, 40, 2, 0]


def test_gradients_reach_every_input() -> None:
    own, table = batch(), VALUES[:7].clone().requires_grad_()
    events = own.embedding_pool(table, torch.arange(46) % 7, mode="max")
    events.sum().backward()
    assert table.grad is not None
    assert table.grad.sum() == 4 * 3  # rows with events, features


def test_everything_runs_on_meta() -> None:
    names = {"items": torch.zeros(46, dtype=torch.int64, device="meta"), "label": torch.zeros(6, device="meta")}
    own = segmented(JaggedBatch(names, OFFSETS.to("meta"), 5), CONFIG, events=46)
    table, scores = torch.zeros(7, 3, device="meta"), torch.zeros(46, device="meta")
    assert own.bins.shape == (4 + 5 + 1 + 6,)
    assert own.pool(VALUES.to("meta")).shape == (6, 3)
    assert own.embedding_pool(table, names["items"], scores).shape == (6, 3)
    assert own.attend(scores, VALUES.to("meta")).shape == (6, 3)


def test_what_is_refused() -> None:
    own = batch()
    with pytest.raises(PolicyError, match="mode must be sum, mean or max: got 'median'"):
        own.pool(VALUES, "median")
    with pytest.raises(PolicyError, match="a maximum has no weights"):
        own.embedding_pool(VALUES, torch.zeros(46, dtype=torch.int64), VALUES[:, 0].clone(), "max")
    with pytest.raises(KernelArgumentError, match=r"contiguous: got strides \(1, 46\)"):
        own.pool(torch.zeros(3, 46).T)
    with pytest.raises(KernelArgumentError, match=r"scores must be torch.float32: got torch.float64"):
        own.attend(torch.zeros(46, dtype=torch.float64), VALUES)
    with pytest.raises(ShapeError, match=r"scores must be \(T,\) = \(46,\): got \(45,\)"):
        own.attend(torch.zeros(45), VALUES)
    with pytest.raises(ShapeError, match="pass events="):
        segmented(JaggedBatch({"items": VALUES.to("meta")}, OFFSETS.to("meta"), 5))


@pytest.mark.parametrize("offsets", [[0, 3, 4], [0, 3, 9], [0, 3, 2, 5], [1, 5]])
def test_offsets_that_do_not_cut_the_events_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ShapeError, match="offsets must"):
        segmented(JaggedBatch(VALUES[:5], torch.tensor(offsets), 2))


def test_of_named_fields_the_offsets_on_the_host_say_how_many_events() -> None:
    fields = {"label": torch.zeros(6), "items": VALUES}  # a field with one entry a row comes first
    assert torch.equal(segmented(JaggedBatch(fields, OFFSETS, 5), CONFIG).bins, batch().bins)


def test_collate_makes_it_with_thresholds_that_suit_the_histogram() -> None:
    policy, lengths = BatchPolicy("segmented", token_budget=500), [1] * 200 + [300]
    own = collate(policy, histogram=lengths)([np.arange(300), np.arange(1)])
    assert isinstance(own, SegmentedBatch)
    assert own.config == LaunchConfig.for_histogram(LengthHistogram.from_lengths(lengths), 64, events=500)
    assert own.config.longest == 300  # so that no launch looks for giants
    check_batch(own)
    assert collate(policy)([np.arange(3)]).config == LaunchConfig()  # type: ignore[union-attr]
    assert collate(policy, launch=CONFIG)([np.arange(3)]).config == CONFIG  # type: ignore[union-attr]


def test_no_rows() -> None:
    own = segmented(JaggedBatch(VALUES[:0], OFFSETS[:1], 0))
    ids = torch.zeros(0, dtype=torch.int64)
    assert own.pool(VALUES[:0]).shape == (0, 3)
    assert own.embedding_pool(VALUES, ids).shape == (0, 3)
    assert own.attend(VALUES[:0, 0].contiguous(), VALUES[:0]).shape == (0, 3)
