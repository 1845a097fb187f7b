"""Mixes of batches agree with the what-if they come from, and with plans."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy, Overflow, PadTo
from labkit.batching.strategies import Layout, Strategy
from labkit.batching.what_if import what_if
from labkit.cost.mix import BatchMix, batch_mix
from labkit.cost.shapes import BatchShape, Shapes, Term, terms_of
from labkit.experiments.lineup import Lineup, policies
from labkit.lengths.generate import power_law
from labkit.lengths.histogram import LengthHistogram

LENGTHS = power_law(5000, alpha=1.6, min_length=1, max_length=200, zero_share=0.1, seed=3)
HISTOGRAM = LengthHistogram.from_lengths(LENGTHS)
LINEUP = Lineup(rows=64, token_budget=2048, overflow=Overflow.TRUNCATE, capacity=256)


def mix_of(policy: BatchPolicy) -> BatchMix:
    return batch_mix(what_if(HISTOGRAM, policy), HISTOGRAM)


@pytest.mark.parametrize("policy", policies(HISTOGRAM, LINEUP), ids=lambda p: str(p.strategy))
def test_batches_slots_and_events_are_those_of_the_what_if(policy: BatchPolicy) -> None:
    scored, mix = what_if(HISTOGRAM, policy), mix_of(policy)
    assert mix.counts.sum() == pytest.approx(scored.batches)
    if policy.spec.layout in (Layout.PADDED, Layout.PACKED_ROWS):
        assert mix.counts @ (mix.shapes.rows * mix.shapes.width) == pytest.approx(scored.slots)
        assert (mix.largest.rows * mix.largest.width).max() == pytest.approx(scored.largest_batch_slots)
    else:
        assert mix.counts @ mix.shapes.rows == pytest.approx(HISTOGRAM.sequences)
        assert mix.counts @ mix.shapes.events == pytest.approx(scored.kept_events)
        assert set(mix.largest.events.tolist()) == {scored.largest_batch_slots}


@pytest.mark.parametrize("strategy", [Strategy.BUCKET_BUDGET, Strategy.BUCKET_GRAPH, Strategy.PAD_MAX])
def test_exact_shapes_are_those_of_a_plan(strategy: Strategy) -> None:
    (policy,) = policies(HISTOGRAM, LINEUP, [strategy])
    plan, mix = plan_epoch(LENGTHS, policy, seed=1), mix_of(policy)
    planned, counts = np.unique(np.stack([plan.rows, plan.padded_lengths]), axis=1, return_counts=True)
    found = sorted(zip(mix.shapes.rows, mix.shapes.width, mix.counts, strict=True))
    merged: dict[tuple[float, float], float] = {}
    for rows, width, count in found:
        merged[rows, width] = merged.get((rows, width), 0) + count
    assert merged == {(r, w): c for r, w, c in zip(*planned.tolist(), counts.tolist(), strict=True)}


def test_widths_of_padding_to_the_longest_spread_as_they_do_over_shuffles() -> None:
    policy = BatchPolicy(Strategy.PAD_BATCH, rows=64)
    mix = mix_of(policy)
    planned = np.concatenate([plan_epoch(LENGTHS, policy, seed=s).padded_lengths for s in range(30)])
    full = mix.shapes.rows == 64
    mean = mix.counts[full] @ mix.shapes.width[full] / mix.counts[full].sum()
    square = mix.counts[full] @ mix.shapes.width[full] ** 2 / mix.counts[full].sum()
    assert mean == pytest.approx(planned.mean(), rel=0.02)
    # the parts are means, which spread a little less than what they stand for
    assert 0.98 < square / (planned.astype(np.float64) ** 2).mean() < 1.02
    assert mix.largest.width.tolist() == [HISTOGRAM.max]


def test_packs_hold_the_pieces() -> None:
    (policy,) = policies(HISTOGRAM, LINEUP, [Strategy.PACKED])
    scored, mix = what_if(HISTOGRAM, policy), mix_of(policy)
    assert scored.packing is not None
    assert mix.counts @ mix.shapes.segments == pytest.approx(scored.packing.pieces)


def test_the_peak_of_windows_is_that_of_the_worst_longest_row() -> None:
    # 16 events: a row of 8 makes 2 windows of 8 x 8, one of 7 makes 3 of 7 x 7, one of 5 makes 4 of 5 x 5
    lengths = [8, 8, 7, 7, 5, 5, 3, 1]
    some = LengthHistogram.from_lengths(lengths)
    policy = BatchPolicy(Strategy.JAGGED, token_budget=16)
    mix = batch_mix(what_if(some, policy), some)
    windows = [terms_of(Shapes.of([BatchShape(events=16, longest=w)]), (Term.WINDOW_SQUARES,)).item() for w in lengths]
    found = terms_of(mix.largest, (Term.WINDOW_SQUARES,))
    assert found.max() == max(windows) == 147
    assert mix.largest.events.tolist() == [16, 16]
    assert sorted(mix.largest.longest) == [7, 8]


def test_rows_of_a_packed_sequence_leave_empty_ones_out() -> None:
    mix = mix_of(BatchPolicy(Strategy.RNN_PACKED, rows=64))
    assert mix.counts @ mix.shapes.filled == pytest.approx(np.count_nonzero(LENGTHS))


def test_a_mix_without_batches_is_empty() -> None:
    dropped = BatchPolicy(
        Strategy.BUCKET_ROWS, bucket_edges=(3,), rows=64, overflow=Overflow.DROP, drop_last=True, pad_to=PadTo.BATCH_MAX
    )
    few = LengthHistogram.from_lengths([2, 1, 9])
    mix = batch_mix(what_if(few, dropped), few)
    assert (len(mix.counts), len(mix.shapes)) == (0, 0)
