"""Where lengths come from at the outside doors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.config import TunedConfig
from labkit.errors import ConfigError, DataFileError, LengthsError
from labkit.experiments.source import open_source, open_tuned
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import preset

HISTOGRAM = LengthHistogram.from_lengths([3, 1, 3])


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    return TunedConfig.from_policy(HISTOGRAM, BatchPolicy("pad_max")).save(tmp_path / "tuned.JSON")


def test_a_tuned_json_brings_its_histogram(tuned: Path) -> None:
    assert open_source(tuned) == open_source(str(tuned)) == HISTOGRAM
    found = open_tuned(tuned)
    assert found is not None
    assert found.batch_policy == BatchPolicy("pad_max")


def test_everything_else_goes_to_the_loaders(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("1,1\n3,2\n")
    for source in ([3, 1, 3], np.array([3, 3, 1]), HISTOGRAM, tmp_path / "h.csv", str(tmp_path / "h.csv")):
        assert open_source(source) == HISTOGRAM
        assert open_tuned(source) is None
    assert open_source("cdnow") == preset("cdnow")


def test_lengths_without_an_event_are_refused() -> None:
    message = "all 3 sequences have length 0: there is no event to batch. Check what was counted."
    with pytest.raises(LengthsError, match=f"^{re.escape(message)}$"):
        open_source([0, 0, 0])


def test_a_user_column_means_nothing_to_a_tuned_json(tuned: Path) -> None:
    with pytest.raises(LengthsError, match=r"^'user' is for event tables \(one row an event\), and '.*' is none"):
        open_source(tuned, user="who")
    with pytest.raises(LengthsError, match=r"^'users' is for event tables"):
        open_source(tuned, users="people.csv")


def test_json_that_is_not_ours_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ConfigError, match="not a tuned configuration of labkit"):
        open_source(tmp_path / "x.json")
    with pytest.raises(DataFileError, match="file not found"):
        open_source(tmp_path / "no.json")
