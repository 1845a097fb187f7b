"""The rows on which every segmented kernel is tried, and the thresholds that force each regime."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig

#: Around the sizes at which a group, a warp and a block end; empty rows first, last and in between.
LENGTHS = (0, 1, 31, 32, 33, 0, 127, 2, 129, 0, 128, 5, 700, 64, 3, 1, 0, 300, 0)
OFFSETS = torch.tensor([0, *LENGTHS]).cumsum(0)
EVENTS = sum(LENGTHS)
ROWS = len(LENGTHS)

_EVERY = 10**6
REGIMES = {
    "mixed": LaunchConfig(3, 33, 100),
    "short": LaunchConfig(_EVERY, _EVERY, _EVERY),
    "medium": LaunchConfig(0, _EVERY, _EVERY),
    "long": LaunchConfig(0, 0, _EVERY),
    "giant": LaunchConfig(0, 0, 16),
    "default": LaunchConfig(),
}

#: D: groups of 4 lanes with a surplus one; one feature a lane; two tiles, the second with one vector.
DIMS = (12, 1, 132)

#: Half a unit in the last place of 1, in each storage type.
ROUNDING = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def random(seed: int, *shape: int) -> Tensor:
    """Standard normal float32."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))
