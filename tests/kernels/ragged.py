"""Rows on which the segmented kernels are tried, the thresholds that force each regime, and bounds of rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig

LENGTHS = (0, 1, 31, 32, 33, 0, 127, 2, 129, 0, 128, 5, 700, 64, 3, 1, 0, 300, 0)
OFFSETS = torch.tensor(LENGTHS).cumsum(0)
OFFSETS = torch.cat([torch.zeros(1, dtype=torch.int64), OFFSETS])
EVENTS = sum(LENGTHS)

EVERY = 10**6
REGIMES = {
    "short": LaunchConfig(EVERY, EVERY, EVERY),
    "medium": LaunchConfig(0, EVERY, EVERY),
    "long": LaunchConfig(0, 0, EVERY),
    "giant": LaunchConfig(0, 0, 16),
    "mixed": LaunchConfig(3, 33, 100),
    "default": LaunchConfig(),
}

#: Half a unit in the last place of 1, in each storage type.
ROUNDING = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

each_regime = pytest.mark.parametrize("config", REGIMES.values(), ids=REGIMES)
#: D: one feature a lane; groups of 4 lanes with a surplus one; two tiles, the second with one vector.
each_dim = pytest.mark.parametrize("dim", [1, 12, 132])


def random(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def assert_within(actual: Tensor, expected: NDArray[Any], bound: NDArray[Any] | float) -> None:
    """NaN where NaN is expected, and nowhere further away than the bound of the arithmetic."""
    found = actual.double().numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg="NaN elsewhere than expected")
    excess = np.nan_to_num(np.abs(found - expected) - bound)
    assert (excess <= 0).all(), f"off by {excess.max():.3g} more than rounding explains, at {np.argmax(excess)}"
