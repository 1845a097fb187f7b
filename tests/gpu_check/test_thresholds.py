"""The search for thresholds, on times that are known."""

from __future__ import annotations

from itertools import product
from math import log2
from typing import Any

import pytest

from labkit.gpu_check.items.order import ITEMS
from labkit.gpu_check.items.thresholds import Thresholds, search
from labkit.gpu_check.lab import Sizes
from labkit.gpu_check.ragged_data import Law

_ORDERED = [
    (a, b, c)
    for a, b, c in product((8, 16, 32, 64, 128, 256), (64, 256, 1024, 4096), (1024, 2048, 4096))
    if a <= b <= c
]


def bowl(bottom: Thresholds, at: Thresholds) -> dict[str, Any]:
    return {"median_s": 1 + sum((log2(a) - log2(b)) ** 2 for a, b in zip(at, bottom, strict=True))}


@pytest.mark.parametrize("bottom", _ORDERED)
def test_the_best_of_all_is_found_with_few_of_them(bottom: Thresholds) -> None:
    found, is_whole = search((32, 128, 2048), lambda maxima: bowl(bottom, maxima), lambda: False)
    assert is_whole
    assert min(found, key=lambda maxima: found[maxima]["median_s"]) == bottom
    assert len(found) < 50  # of 99 in order
    assert all(list(maxima) == sorted(maxima) for maxima in found)


def test_when_the_time_is_over_it_says_so_and_the_start_was_timed() -> None:
    left = iter([False, False, True])
    found, is_whole = search((32, 128, 2048), lambda maxima: bowl((8, 64, 1024), maxima), lambda: next(left))
    assert list(found) == [(32, 128, 2048), (32, 64, 2048), (32, 256, 2048)]
    assert not is_whole
    assert len(search((1, 2, 3), lambda maxima: bowl((1, 2, 3), maxima), lambda: True)[0]) == 1


def test_all_searches_fit_the_share_of_the_item() -> None:
    (share,) = [item.share for item in ITEMS if item.key == "thresholds"]
    total = sum(item.share for item in ITEMS)
    # two ops on each law; what is left is for the rows themselves, the choice of the model and the default
    assert 2 * len(Law) * Sizes().sweep_s <= 0.7 * share / total * 240
