from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from labkit.errors import ShapeError
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.embedding_pool import (
    embedding_pool_cuda,
    embedding_pool_table_grad_cuda,
)
from labkit.reference import embedding as reference
from tests.kernels.cpu_device import CpuDevice
from tests.kernels.ragged import (
    EVENTS,
    LENGTHS,
    OFFSETS,
    ROUNDING,
    assert_within,
    each_regime,
    random,
)

HOST = OFFSETS.numpy()
ROWS, ITEMS = len(LENGTHS), 50
EPS = ROUNDING[torch.float32]

each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def ids_with_strangers() -> Tensor:
    """(T,) ids, popular and rare ones; two that no table has, in rows 6 and 17."""
    ids = torch.from_numpy(np.random.default_rng(0).zipf(1.5, EVENTS) % ITEMS)
    ids[OFFSETS[6]], ids[OFFSETS[17]] = ITEMS, -1
    return ids


def bins_of(config: LaunchConfig) -> Tensor:
    return bin_rows(OFFSETS, config.giants(EVENTS), config.thresholds)


@each_regime
@each_weighting
def test_gradient_of_the_table(cpu_device: CpuDevice, config: LaunchConfig, weighted: bool) -> None:
    table, ids, grad, mean = random(0, ITEMS, 12), ids_with_strangers(), random(2, ROWS, 12), not weighted
    weights = random(1, EVENTS) if weighted else None
    giants = config.giants(EVENTS)
    found = embedding_pool_table_grad_cuda(grad, ITEMS, ids, weights, OFFSETS, giants, config.thresholds, mean)
    own = None if weights is None else weights.numpy()
    expected, _ = reference.embedding_pool_backward(grad.numpy(), table.numpy(), ids.numpy(), HOST, own, mean=mean)
    sizes = None if weights is None else weights.abs().numpy()
    size, _ = reference.embedding_pool_backward(grad.abs().numpy(), table.numpy(), ids.numpy(), HOST, sizes, mean=mean)
    times = np.bincount(ids.clamp(0, ITEMS - 1).numpy(), minlength=ITEMS)[:, None]
    assert_within(found, expected, EPS * size * (2 * times + 2))


@each_weighting
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_mean_of_more_events_than_16_bits_hold_has_its_gradient(
    fast_device: CpuDevice, dtype: torch.dtype, weighted: bool
) -> None:
    events = 70_000  # inf in float16, 70 144 in bfloat16
    offsets, ids = torch.tensor([0, events]), torch.zeros(events, dtype=torch.int64)
    weights = torch.ones(events, dtype=dtype) if weighted else None
    found = embedding_pool_table_grad_cuda(
        torch.ones(1, 1, dtype=dtype), 1, ids, weights, offsets, events // 2049, LaunchConfig().thresholds, True
    )
    assert found.dtype is dtype
    assert found.item() == 1
    assert f"embedding_pool<float, 1, {str(weighted).lower()}>" in fast_device.launched


def test_empty_bags_of_any_kind_are_zero(fast_device: CpuDevice) -> None:
    table = torch.arange(10.0).view(5, 2)
    offsets, ids = torch.tensor([0, 1, 1, 3, 3, 4, 5]), torch.arange(5)
    bins = bin_rows(offsets, 0, (3, 33, 100))
    found = embedding_pool_cuda(table, ids, None, offsets, bins, (3, 33, 100), True)
    assert found.tolist() == [[0, 1], [0, 0], [3, 4], [0, 0], [6, 7], [8, 9]]


def test_zero_bags_launch_nothing(fast_device: CpuDevice) -> None:
    none, ids = torch.zeros(1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    bins = bin_rows(none, 0, (3, 33, 100))
    assert embedding_pool_cuda(torch.ones(5, 2), ids, None, none, bins, (3, 33, 100), True).shape == (0, 2)
    assert not fast_device.launched
    grad = embedding_pool_table_grad_cuda(torch.ones(0, 2), 5, ids, None, none, 0, (3, 33, 100), True)
    assert torch.equal(grad, torch.zeros(5, 2))


def test_ids_of_an_empty_table_are_refused(fast_device: CpuDevice) -> None:
    ids, config = torch.zeros(EVENTS, dtype=torch.int64), LaunchConfig()
    arguments = (torch.ones(0, 2), ids, None, OFFSETS, bins_of(config), config.thresholds, False)
    with pytest.raises(ShapeError, match=f"a table without rows has no entry for {EVENTS} ids"):
        embedding_pool_cuda(*arguments)
