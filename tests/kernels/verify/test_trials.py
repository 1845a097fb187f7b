"""What a trial accepts, and what it does not."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from labkit.gpu.catalog import KERNELS
from labkit.gpu.regimes import Regime, regime_of
from labkit.gpu.verify.ragged import LENGTHS, REGIMES
from labkit.gpu.verify.trial import Compared
from labkit.gpu.verify.trials import trials


@pytest.mark.parametrize(
    ("found", "expected", "bound", "said"),
    [
        ([1.0, 2.0], [1.0, 2.1], 0.05, r"sums: 1 of 2 are wrong, first \[1\]: expected 2.1, got 2"),
        ([1.0, np.nan], [1.0, 2.0], 0.05, "got nan"),
        ([1.0, 2.0], [1.0, np.nan], 0.05, "expected nan, got 2"),
        ([1.0, 2.0], [1.0, np.inf], 0.05, "expected inf, got 2"),
        ([1.0, -np.inf], [1.0, np.inf], 0.05, "expected inf, got -inf"),
        ([1.0, 2.0], [1.0], 0.05, r"expected shape \(1,\), got \(2,\)"),
        ([1.0, 2.0], [1.0, 2.1], np.array([0.0, 0.05]), "expected 2.1"),
    ],
)
def test_a_result_that_is_off_is_named(found: list[float], expected: list[float], bound: object, said: str) -> None:
    difference = Compared("sums", torch.tensor(found), np.array(expected), bound).difference  # type: ignore[arg-type]
    assert difference is not None
    assert re.search(said, difference)


def test_a_result_within_its_bound_is_accepted() -> None:
    found, expected = torch.tensor([1.0, 2.0, torch.nan, torch.inf]), np.array([1.0, 2.04, np.nan, np.inf])
    assert Compared("sums", found, expected, 0.05).difference is None
    assert Compared("sums", found[:0], expected[:0]).difference is None


@pytest.mark.parametrize("op", KERNELS)
def test_every_op_has_trials_and_samples_with_names_of_their_own(op: str) -> None:
    names = [trial.name for trial in trials(op)]
    assert len(set(names)) == len(names)
    assert any(trial.sample for trial in trials(op))


@pytest.mark.parametrize("name", [regime.value for regime in Regime])
def test_each_regime_is_forced(name: str) -> None:
    found = {regime_of(length, REGIMES[name].thresholds) for length in LENGTHS if length > 16}
    assert found == {Regime(name)}


def test_the_mixed_thresholds_bring_every_regime() -> None:
    assert {regime_of(length, REGIMES["mixed"].thresholds) for length in LENGTHS} == set(Regime)
