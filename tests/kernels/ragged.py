"""The rows of the trials (``labkit.gpu.verify``) for tests that try something else on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Tensor

from labkit.gpu.verify.ragged import EVENTS, LENGTHS, OFFSETS, REGIMES, ROUNDING, random
from labkit.gpu.verify.trial import Compared

__all__ = ["EVENTS", "LENGTHS", "OFFSETS", "REGIMES", "ROUNDING", "assert_within", "each_dim", "each_regime", "random"]

each_regime = pytest.mark.parametrize("config", REGIMES.values(), ids=REGIMES)
#: D: one feature a lane; groups of 4 lanes with a surplus one; two tiles, the second with one vector.
each_dim = pytest.mark.parametrize("dim", [1, 12, 132])


def assert_within(actual: Tensor, expected: NDArray[Any], bound: NDArray[Any] | float) -> None:
    """NaN where NaN is expected, and nowhere further away than the bound of the arithmetic."""
    difference = Compared("values", actual, np.asarray(expected), bound).difference
    assert difference is None, difference
