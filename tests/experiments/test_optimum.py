from __future__ import annotations

import pytest

from labkit.batching.edges import optimal_edges
from labkit.experiments.lineup import Lineup
from labkit.experiments.optimum import OptimumCache, elbow
from labkit.lengths.presets import preset

LENGTHS = preset("ml-100k")


def test_it_is_the_optimum_of_so_many_edges_with_the_whole_curve() -> None:
    cache = OptimumCache(most=16)
    found = cache.best(LENGTHS, Lineup(length_multiple=8), 5)
    assert found.edges == optimal_edges(LENGTHS, 5, length_multiple=8).edges
    assert found.curve == optimal_edges(LENGTHS, 16, length_multiple=8).curve


def test_the_quick_way_finds_the_same_edges_and_leaves_out_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = OptimumCache(most=16)
    quick, best = cache.quick(LENGTHS, Lineup(), 5), OptimumCache(most=16).best(LENGTHS, Lineup(), 5)
    assert quick is not None
    assert (quick.edges, quick.curve) == (best.edges, best.curve[:5])
    cache.best(LENGTHS, Lineup(), 5)
    assert cache.quick(LENGTHS, Lineup(), 5) == best  # known as a whole
    other = cache.quick(preset("cdnow"), Lineup(), 5)
    assert other is not None
    assert other.edges == optimal_edges(preset("cdnow"), 5).edges
    cache.best(LENGTHS, Lineup(), 5)
    monkeypatch.setattr("labkit.experiments.optimum._QUICK", 100)
    assert cache.quick(LENGTHS, Lineup(), 5) == best
    assert cache.quick(LENGTHS, Lineup(), 6) is None
    assert cache.quick(LENGTHS, Lineup(max_length=300), 5) is None


def test_a_cap_that_is_dragged_leaves_no_more_than_some_settings_behind() -> None:
    cache = OptimumCache(most=4)
    for cap in range(300, 500):
        cache.best(LENGTHS, Lineup(max_length=cap), 3)
    assert len(cache._found) <= 64


def test_each_setting_has_its_own_and_other_data_starts_anew() -> None:
    cache = OptimumCache(most=16)
    assert cache.best(LENGTHS, Lineup(max_length=100), 3).edges[-1] == 100
    assert cache.best(LENGTHS, Lineup(), 3).edges[-1] == 737
    assert cache.best(preset("cdnow"), Lineup(), 3).edges[-1] == 217


@pytest.mark.parametrize(
    ("curve", "bend"),
    [
        ((100, 40, 30, 28, 27), 2),  # below the chord by 0, .57, .46, .24, 0
        ((100, 100, 100), 1),
        ((7,), 1),
        ((90, 60, 30), 1),  # a straight line has no elbow
    ],
)
def test_the_elbow_is_farthest_below_the_chord(curve: tuple[int, ...], bend: int) -> None:
    assert elbow(curve) == bend
