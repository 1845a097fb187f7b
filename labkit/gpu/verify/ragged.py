"""The rows on which every segmented kernel is tried, and the thresholds that force each regime."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig

#: Around the sizes at which a group, a warp and a block end, with empty rows in between. The first and the last row
#: have events, so that a kernel that leaves one of them out is noticed.
LENGTHS = (45, 1, 31, 32, 33, 0, 127, 2, 129, 0, 128, 5, 700, 64, 3, 1, 0, 300, 7)
OFFSETS = torch.tensor([0, *LENGTHS]).cumsum(0)
EVENTS = sum(LENGTHS)
ROWS = len(LENGTHS)

#: A row whose length no 16 bits hold, and whose float32 sums are exact.
MILLION = 2**20

_EVERY = 10**6
REGIMES = {
    "mixed": LaunchConfig(3, 33, 100),
    "short": LaunchConfig(_EVERY, _EVERY, _EVERY),
    "medium": LaunchConfig(0, _EVERY, _EVERY),
    "long": LaunchConfig(0, 0, _EVERY),
    "giant": LaunchConfig(0, 0, 16),
    "default": LaunchConfig(),
}

#: One row, a giant by one event: its pieces fill the workspace to the end.
FULL = LaunchConfig(0, 0, 16)
FULL_OFFSETS = torch.tensor([0, 17])

#: D: groups of 4 lanes with a surplus one; one feature a lane; two tiles, the second with one vector.
DIMS = (12, 1, 132)
#: D of four tiles.
LARGE_DIM = 512
#: D of the samples of 16-bit storage: four features a lane, and one.
STORED_DIMS = (12, 3)
#: D of groups of two lanes: a sum over a group that reaches out of it is noticed with these alone.
PAIR_DIM = 8

#: Half a unit in the last place of 1, in each storage type.
ROUNDING = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def random(seed: int, *shape: int) -> Tensor:
    """Standard normal float32."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))
