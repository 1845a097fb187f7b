"""Which rows are short, medium, long or giant, and how many blocks a launch needs at worst: the twin of rows.cuh."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

BLOCK = 256  # threads; the constants of kernels/rows.cuh
WARPS = BLOCK // 32
HEADER = 4  # entries of bins before the first pieces

#: Vectors of one event that a group of lanes holds; more are cut into tiles.
TILE_VECTORS = 32

#: Rows times tiles of a launch: more than that would leave an int in the kernels.
MAX_ROWS = 2**31 - 1024


class Regime(StrEnum):
    """Who works on a row."""

    SHORT = "short"  # a group of lanes
    MEDIUM = "medium"  # a warp
    LONG = "long"  # a block
    GIANT = "giant"  # several blocks, whose results are combined


def vector_features(dim: int, *, aligned: bool = True) -> int:
    """V, features that a lane takes at once: 4 where D is a multiple of 4 and the memory is aligned to it, else 1."""
    return 4 if dim % 4 == 0 and aligned else 1


def group_lanes(vectors: int) -> int:
    """Lanes of a group: the least power of two that holds the vectors of one event, at most 32."""
    return min(32, 1 << (max(1, vectors) - 1).bit_length())


def tiles(vectors: int) -> int:
    """Tiles of 32 vectors."""
    return -(-vectors // TILE_VECTORS)


def regime_of(length: int, thresholds: Sequence[int]) -> Regime:
    """The regime of a row of ``length`` events; thresholds are short, medium and long maximum."""
    for regime, most in zip(Regime, thresholds, strict=False):
        if length <= most:
            return regime
    return Regime.GIANT


def pieces(events: int, giants: int, long_max: int) -> int:
    """The most pieces that ``events`` events in at most ``giants`` giant rows are cut into."""
    return events // long_max + giants if giants else 0


def blocks(rows: int, events: int, giants: int, thresholds: Sequence[int], *, lanes: int = 1, tiles: int = 1) -> int:
    """Blocks of a launch that always suffice: units of work of the worst batch of these sizes.

    What the batch really needs is known on the device alone; surplus blocks return at once.

    Args:
        rows: B.
        events: T.
        giants: the most giant rows.
        thresholds: short, medium and long maximum.
        lanes: of a group.
        tiles: units of work of a row: 1, or ``tiles(vectors)``.
    """
    short_max, medium_max, long_max = thresholds
    of_pieces = pieces(events, giants, long_max) * tiles
    of_long = min(rows, events // (medium_max + 1)) * tiles
    of_medium = -(-min(rows, events // (short_max + 1)) * tiles // WARPS)
    of_short = -(-rows * tiles // (WARPS * (32 // lanes)))
    return of_pieces + of_long + of_medium + of_short
