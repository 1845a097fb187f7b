from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching import random_order as module
from labkit.batching.random_order import random_order


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 2**32))
def test_every_index_once_group_after_group(groups: list[int], seed: int) -> None:
    own = np.array(groups, dtype=np.uint8)
    order = random_order(rng(seed), own.size, lambda start, stop: own[start:stop], 5)
    assert sorted(order.tolist()) == list(range(own.size))
    assert own[order].tolist() == sorted(groups)


@pytest.mark.parametrize("n", [1, 2, 3, 1000])
def test_without_groups_it_is_a_permutation(n: int) -> None:
    assert sorted(random_order(rng(), n).tolist()) == list(range(n))


def test_all_orders_are_equally_likely() -> None:
    # 24 orders of four, 24 000 draws: each about 1000 times; chi-square of 23 degrees, 1 in 10^4 above 58
    seen: dict[tuple[int, ...], int] = {}
    source = rng(5)
    for _ in range(24_000):
        key = tuple(random_order(source, 4).tolist())
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 24
    assert sum((count - 1000) ** 2 / 1000 for count in seen.values()) < 58


def test_chunks_leave_no_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    own = (np.arange(1000) % 3).astype(np.uint8)
    whole = random_order(rng(2), 1000, lambda start, stop: own[start:stop], 3)
    monkeypatch.setattr(module, "_CHUNK", 7)
    np.testing.assert_array_equal(whole, random_order(rng(2), 1000, lambda start, stop: own[start:stop], 3))


def test_with_too_few_random_bits_indices_are_shuffled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST_RANDOM_BITS", 65)
    own = np.array([1, 0, 1, 0, 2, 1], dtype=np.uint8)
    order = random_order(rng(), 6, lambda start, stop: own[start:stop], 3)
    assert own[order].tolist() == [0, 0, 1, 1, 1, 2]
    assert sorted(order.tolist()) == list(range(6))
    assert sorted(random_order(rng(), 6).tolist()) == list(range(6))
