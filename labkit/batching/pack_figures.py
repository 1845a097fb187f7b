"""Figures of the packs of a data set: how close to the fewest, how even, and how much of a pack is one user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from labkit.batching.pack_bound import fewest_packs
from labkit.batching.pack_pieces import Pieces, pieces_of
from labkit.batching.packing import Packing, pack
from labkit.batching.policy import BatchPolicy
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class PackingFigures:
    """All packs of a data set in numbers, those that ``drop_last`` leaves out included. All are exact.

    Attributes:
        pieces: sequences, and pieces of split ones, that share the packs.
        lower_bound: no packing has fewer packs (Martello-Toth L2).
        gap: packs / lower_bound - 1: at most so much above the optimum; 0 without packs.
        balance: largest / mean over packs of the sum of squared lengths: what attention time follows; 0 without any.
        largest_user_share_mean: share of a pack's events that belongs to its largest user, mean over packs with events:
            where it is near 1, packing hardly mixes users, and one user's gradient is the row's; 0 without events.
        largest_user_share_max: the same, of the pack where it is largest: 1 where a user is alone.
    """

    pieces: int
    lower_bound: int
    gap: float
    balance: float
    largest_user_share_mean: float
    largest_user_share_max: float


@dataclass(frozen=True, eq=False, slots=True)
class Packed:
    """A data set in packs: the pieces, the packs and their figures."""

    pieces: Pieces
    packing: Packing
    figures: PackingFigures


def packed(histogram: LengthHistogram, policy: BatchPolicy) -> Packed:
    """Pack a data set; the last few results are kept, so that what does not change the packs costs nothing.

    Raises:
        PolicyError: a length above the capacity with ``overflow='error'``.

    Cost: that of ``pack``: some ten milliseconds for 4096 distinct lengths.
    """
    plain = BatchPolicy(
        policy.strategy,
        capacity=policy.capacity,
        max_length=policy.max_length,
        max_sequences_per_pack=policy.max_sequences_per_pack,
        overflow=policy.overflow,
    )
    return _packed(histogram, plain)


@lru_cache(maxsize=8)
def _packed(histogram: LengthHistogram, policy: BatchPolicy) -> Packed:
    pieces = pieces_of(policy, histogram)
    found = pack(pieces.values, pieces.counts, pieces.capacity, policy.max_sequences_per_pack)
    bound = fewest_packs(pieces.values, pieces.counts, pieces.capacity, policy.max_sequences_per_pack)
    return Packed(pieces, found, _figures(pieces, found, bound))


def _figures(pieces: Pieces, packing: Packing, bound: int) -> PackingFigures:
    count, copies = packing.count, packing.copies
    events = packing.along(copies * packing.length)
    squares = packing.along(copies * packing.length.astype(np.float64) ** 2)
    real = events > 0
    share, many = packing.longest()[real] / events[real], count[real]
    return PackingFigures(
        pieces=int(pieces.counts.sum()),
        lower_bound=bound,
        gap=packing.packs / bound - 1 if bound else 0.0,
        balance=float(squares.max() / (squares @ count / count.sum())) if real.any() else 0.0,
        largest_user_share_mean=float(share @ many / many.sum()) if real.any() else 0.0,
        largest_user_share_max=float(share.max()) if real.any() else 0.0,
    )
