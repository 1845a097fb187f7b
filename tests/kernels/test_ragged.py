from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.gpu.regimes import Regime, regime_of
from tests.kernels.ragged import LENGTHS, REGIMES, assert_within


def test_a_result_that_is_off_or_nan_is_not_accepted() -> None:
    with pytest.raises(AssertionError, match="more than rounding"):
        assert_within(torch.tensor([1.0, 2.0]), np.array([1.0, 2.1]), 0.05)
    with pytest.raises(AssertionError, match="NaN elsewhere"):
        assert_within(torch.tensor([1.0, torch.nan]), np.array([1.0, 2.0]), 0.05)
    with pytest.raises(AssertionError, match="NaN elsewhere"):
        assert_within(torch.tensor([1.0, 2.0]), np.array([1.0, np.nan]), 0.05)


@pytest.mark.parametrize("name", [regime.value for regime in Regime])
def test_each_regime_is_forced(name: str) -> None:
    found = {regime_of(length, REGIMES[name].thresholds) for length in LENGTHS if length > 16}
    assert found == {Regime(name)}


def test_the_mixed_thresholds_bring_every_regime() -> None:
    assert {regime_of(length, REGIMES["mixed"].thresholds) for length in LENGTHS} == set(Regime)
