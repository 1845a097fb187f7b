from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import KernelLaunchError
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.checks import check_row_count
from labkit.gpu.regimes import WARPS, Regime, blocks, group_lanes, regime_of, tiles, vector_features
from labkit.lengths.generate import power_law
from labkit.lengths.histogram import LengthHistogram


def test_groups_of_lanes() -> None:
    assert [group_lanes(vectors) for vectors in (1, 2, 3, 16, 17, 32, 33, 128)] == [1, 2, 4, 16, 32, 32, 32, 32]
    assert [tiles(vectors) for vectors in (1, 32, 33, 128)] == [1, 1, 2, 4]
    assert [vector_features(64), vector_features(63), vector_features(64, aligned=False)] == [4, 1, 1]


def test_a_maximum_belongs_to_its_regime() -> None:
    assert [regime_of(length, (4, 8, 16)) for length in (0, 4, 5, 8, 9, 16, 17)] == [
        *(Regime.SHORT, Regime.SHORT, Regime.MEDIUM, Regime.MEDIUM, Regime.LONG, Regime.LONG, Regime.GIANT)
    ]


@given(
    lengths=st.lists(st.integers(0, 300), max_size=40),
    thresholds=st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50)).map(
        lambda steps: tuple(np.cumsum(steps).tolist())
    ),
    lanes=st.sampled_from([1, 4, 32]),
    parts=st.integers(1, 4),
)
def test_the_blocks_suffice_for_any_rows(
    lengths: list[int], thresholds: tuple[int, int, int], lanes: int, parts: int
) -> None:
    events, config = sum(lengths), LaunchConfig(*thresholds)
    of = {regime: [n for n in lengths if regime_of(n, thresholds) is regime] for regime in Regime}
    assert len(of[Regime.GIANT]) <= config.giants(events)
    needed = sum(-(-n // thresholds[2]) for n in of[Regime.GIANT]) * parts  # a block a piece and tile
    needed += len(of[Regime.LONG]) * parts
    needed += -(-len(of[Regime.MEDIUM]) * parts // WARPS)
    needed += -(-len(of[Regime.SHORT]) * parts // (WARPS * (32 // lanes)))
    found = blocks(len(lengths), events, config.giants(events), thresholds, lanes=lanes, tiles=parts)
    assert found >= needed
    assert bool(found) == bool(lengths)


@pytest.mark.parametrize("wrong", [(-1, 2, 3), (3, 2, 4), (1, 4, 3), (0, 0, 0), (1, 2, 2**31)])
def test_thresholds_that_decrease_are_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(KernelLaunchError, match=f"got {wrong[0]}, {wrong[1]}, {wrong[2]}. Use LaunchConfig"):
        LaunchConfig(*wrong)


def test_more_rows_than_an_int_numbers_are_refused() -> None:
    check_row_count(2**31 - 1024)
    with pytest.raises(KernelLaunchError, match="up to 2147482624 rows"):
        check_row_count(2**31 - 1023)


def test_giants_need_room_only_where_there_can_be_some() -> None:
    assert LaunchConfig(4, 8, 16).giants(100) == 100 // 17
    assert LaunchConfig(4, 8, 16, longest=17).giants(100) == 5
    assert LaunchConfig(4, 8, 16, longest=16).giants(100) == 0


def histogram(longest: int) -> LengthHistogram:
    lengths = power_law(20_000, alpha=1.2, min_length=1, max_length=longest, seed=0)
    return LengthHistogram.from_lengths(np.append(lengths, longest))


def test_thresholds_for_a_histogram() -> None:
    short, long = (LaunchConfig.for_histogram(histogram(longest), 64) for longest in (8, 100_000))
    assert short.longest == 8
    assert short.giants(10**6) == 0
    assert regime_of(8, short.thresholds) is Regime.SHORT  # nothing to gain from a second group
    assert regime_of(100_000, long.thresholds) is not Regime.SHORT  # the others would wait for it
    assert regime_of(100_000, long.thresholds) is not Regime.MEDIUM


@pytest.mark.parametrize("dim", [8, 64, 256])
def test_no_row_of_thousands_of_events_is_left_to_a_warp(dim: int) -> None:
    uniform = LengthHistogram.from_lengths(np.arange(1, 4097))
    config = LaunchConfig.for_histogram(uniform, dim)
    assert config.medium_max <= 512
    assert regime_of(513, config.thresholds) is Regime.LONG


def test_small_batches_share_rows_earlier_than_large_ones() -> None:
    lengths = histogram(4096)
    small = LaunchConfig.for_histogram(lengths, 64, events=4096)
    large = LaunchConfig.for_histogram(lengths, 64)
    assert small.short_max < large.short_max


@pytest.mark.parametrize(("dim", "events"), [(0, None), (64, 0)])
def test_sizes_that_make_no_sense(dim: int, events: int | None) -> None:
    with pytest.raises(KernelLaunchError, match="must be at least 1"):
        LaunchConfig.for_histogram(histogram(8), dim, events=events)
