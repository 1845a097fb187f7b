"""Where lengths come from at the outside doors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.config import TunedConfig
from labkit.errors import ConfigError, DataFileError, LengthsError
from labkit.experiments.source import open_source, open_tuned, require_source
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


def test_a_tilde_is_the_home_folder(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tuned.parent))
    (tuned.parent / "e.csv").write_text("who\na\n")
    (tuned.parent / "u.csv").write_text("who\na\nb\n")
    assert open_source("~/tuned.JSON") == HISTOGRAM
    assert open_source("~/e.csv", user="who", users="~/u.csv") == LengthHistogram.from_lengths([1, 0])


def test_whether_a_source_is_there_without_reading_it(tuned: Path) -> None:
    (tuned.parent / "damaged.csv").write_text("damaged")
    for name in (tuned, tuned.parent, tuned.parent / "damaged.csv", "cdnow", "s3://bucket/x.parquet", "logs/*.csv"):
        require_source(str(name))
    for name in ("no.csv", "", "cdnw"):
        with pytest.raises(DataFileError, match=rf"^file not found: '{name}'\. Check the path, from folder '.*'\.$"):
            require_source(name)
