"""The plan of packs: pieces of equal length dealt at random to the patterns of the packing, packs shuffled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.batching.epoch_plan import EpochPlan
from labkit.batching.pack_figures import packed
from labkit.batching.pack_pieces import pieces_of, width_of
from labkit.batching.pack_pools import Dealt, pools_of
from labkit.batching.pack_templates import templates_of
from labkit.batching.policy import BatchPolicy
from labkit.lengths.histogram import LengthHistogram


def plan_packs(
    lengths: NDArray[np.integer], histogram: LengthHistogram, policy: BatchPolicy, rng: np.random.Generator
) -> EpochPlan:
    """Plan one epoch of packs; see ``plan_epoch``.

    A split sequence is cut from its end: every piece has the capacity, but for the oldest, which is the rest. With
    ``shuffle=False`` the packs come as they were made, the longest sequences first, and sequences of equal length in
    the given order. A last, partial batch of packs that ``drop_last`` leaves out takes its pieces with it: a sequence
    of which a piece is left is truncated, one of which none is left is dropped.

    Raises:
        PolicyError: a length above the capacity with ``overflow='error'``; the message has the first index.

    Cost: O(N), chunked: beside the result (24 bytes a piece) about 10 bytes a piece, and a chunk.
    """
    pieces = pieces_of(policy, histogram, lengths)
    packing = packed(histogram, policy).packing
    of_pack = np.repeat(np.arange(packing.count.size), packing.count)
    if policy.shuffle:
        rng.shuffle(of_pack)
    left_out = of_pack.size % policy.rows if policy.drop_last else 0
    of_pack = of_pack[: of_pack.size - left_out]
    templates = templates_of(packing, pieces.values)
    pack_offsets = np.concatenate(([0], np.cumsum(np.diff(templates.offsets)[of_pack])))
    pools = pools_of(lengths, policy, pieces, rng if policy.shuffle else None)
    dealt = pools.deal(templates, of_pack, pack_offsets)
    truncated, dropped = pieces.sequences_truncated, pieces.sequences_dropped
    if left_out:
        truncated, dropped = _count_cut(lengths, dealt)
    kept = int(dealt.stop.sum()) - int(dealt.start.sum())
    bounds = np.append(np.arange(0, of_pack.size, policy.rows), of_pack.size)
    rows, width = np.diff(bounds), width_of(policy, histogram)
    return EpochPlan(
        policy=policy,
        order=dealt.order,
        batch_offsets=pack_offsets[bounds],
        padded_lengths=np.full(rows.size, width),
        rows=rows,
        batch_slots=rows * width,
        kept_events=kept,
        events_lost=histogram.events - kept,
        sequences_truncated=truncated,
        sequences_dropped=dropped,
        batches_over_budget=0,
        pack_offsets=pack_offsets,
        event_start=dealt.start,
        event_stop=dealt.stop,
        lengths=lengths,
    )


def _count_cut(lengths: NDArray[np.integer], dealt: Dealt) -> tuple[int, int]:
    """Sequences that lose some of their events, and those of which nothing is left. Cost: O(N)."""
    lost = lengths.astype(np.int64)
    np.subtract.at(lost, dealt.order, dealt.stop - dealt.start)
    absent = np.ones(lengths.size, dtype=bool)
    absent[dealt.order] = False
    return int(np.count_nonzero(lost[~absent])), int(np.count_nonzero(absent))
