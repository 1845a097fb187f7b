"""The histograms that come with labkit: their published figures, their checksums, and the arithmetic one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import DataFileError
from labkit.lengths import presets
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import PRESETS, apportion, find_preset, preset, preset_names

FOLDER = Path(__file__).parents[2] / "data" / "lengths"

# sequences, events, mean, P50, P95, P99, max
STATISTICS = {
    "cdnow": (23_570, 69_659, 2.96, 1, 9, 20, 217),
    "household-lines": (2_469, 1_469_307, 595.10, 407, 1752, 2809.32, 4193),
    "basket-items": (155_848, 1_469_307, 9.43, 5, 35, 59, 161),
    "ml-100k": (943, 100_000, 106.04, 65, 310.6, 442.54, 737),
    "industrial_20m": (20_000_000, 210_917_639, 10.55, 2, 32, 180, 1200),
}

# padding to the longest; of the 50 most recent events: users cut, events kept, padding
PADDING = {
    "cdnow": (0.9864, 0.0008, 0.9876, 0.9416),
    "household-lines": (0.8581, 0.9081, 0.0800, 0.0474),
    "basket-items": (0.9414, 0.0178, 0.9728, 0.8166),
    "ml-100k": (0.8561, 0.5970, 0.3993, 0.1531),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_preset_has_its_published_statistics(name: str) -> None:
    histogram = preset(name)
    p50, p95, p99 = (round(value, 2) for value in histogram.quantiles([0.5, 0.95, 0.99]))
    figures = (histogram.sequences, histogram.events, round(histogram.mean, 2), p50, p95, p99, histogram.max)
    assert figures == STATISTICS[name]


@pytest.mark.parametrize("name", PADDING)
def test_a_preset_has_its_published_padding(name: str) -> None:
    histogram = preset(name)
    recent = histogram.capped(50)
    longer = histogram.values > 50
    figures = (
        1 - histogram.mean / histogram.max,
        histogram.counts[longer].sum() / histogram.sequences,
        recent.events / histogram.events,
        1 - recent.events / (50 * recent.sequences),
    )
    assert tuple(round(float(figure), 4) for figure in figures) == PADDING[name]


def test_the_readme_of_the_data_states_the_same_statistics() -> None:
    text = (FOLDER / "README.md").read_text()
    for name, (sequences, events, mean, p50, p95, p99, longest) in STATISTICS.items():
        counts = f"{sequences:,} | {events:,}".replace(",", " ")
        assert f"| `{name}` | {counts} | {mean:.2f} | {p50} | {p95} | {p99} | {longest} |" in text


def test_every_preset_says_what_it_is_and_where_it_comes_from() -> None:
    assert preset_names() == tuple(STATISTICS)
    for entry in PRESETS:
        assert all((entry.title, entry.sequence, entry.source, entry.licence))
        assert entry.synthetic == (entry.file is None)
        assert not entry.synthetic or ("synthetic" in entry.title and "synthetic" in entry.source)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("cdnow-transactions", "cdnow"),
        ("CDNOW", "cdnow"),
        ("completejourney-items-per-basket", "basket-items"),
        ("ml_100k", "ml-100k"),
        ("industrial-20m", "industrial_20m"),
    ],
)
def test_stems_case_and_underscores_find_the_preset(name: str, key: str) -> None:
    found = find_preset(name)
    assert found is not None
    assert found.key == key
    assert preset(name) == preset(key)


def test_an_unknown_preset_is_refused_with_the_nearest_and_all() -> None:
    with pytest.raises(DataFileError) as refused:
        preset("basket-item")
    assert str(refused.value) == (
        "no preset 'basket-item': did you mean 'basket-items'? presets are cdnow, household-lines, basket-items, "
        "ml-100k, industrial_20m."
    )
    for name in ("", "zzz"):
        with pytest.raises(DataFileError, match=f"no preset '{name}': presets are cdnow, "):
            preset(name)


# --- files


def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lengths"
    shutil.copytree(FOLDER, folder)
    monkeypatch.setattr(presets, "_FOLDERS", (tmp_path / "not there", folder))
    return folder


def test_a_file_with_one_digit_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied(tmp_path, monkeypatch) / "cdnow-transactions.csv"
    assert preset("cdnow").sequences == 23_570
    path.write_bytes(path.read_bytes().replace(b"1,11908", b"1,11909"))
    with pytest.raises(DataFileError) as refused:
        preset("cdnow")
    message = str(refused.value)
    assert message.startswith("cdnow-transactions.csv is damaged: its sha256 should be 68d458c0676c..., got ")
    assert message.endswith(f"... ({path}). Restore it, with git checkout or by installing labkit again.")
    assert preset("ml-100k").sequences == 943


def test_a_missing_file_or_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied(tmp_path, monkeypatch)
    (folder / "ml-100k.csv").unlink()
    with pytest.raises(DataFileError) as no_file:
        preset("ml-100k")
    assert str(no_file.value) == (
        f"ml-100k.csv is missing from {tmp_path / 'not there'} and {folder}: install labkit again."
    )
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(DataFileError) as no_sum:
        preset("cdnow")
    assert str(no_sum.value) == (
        f"no checksum of cdnow-transactions.csv in {folder / 'SHA256SUMS'}: restore that file, or install labkit again."
    )


# --- the arithmetic one


def test_the_industrial_preset_is_the_same_on_every_machine() -> None:
    assert preset("industrial_20m").fingerprint == "9c4b2ca21d286364e83df440b56fe617fc31e60bcae38d984a7f9b4b256916d3"


def test_the_industrial_preset_follows_its_law_within_one_user_a_length() -> None:
    histogram = preset("industrial_20m")
    k = np.arange(1, 1202, dtype=np.float64)
    tail = (k**-0.84375 - 1201**-0.84375) / (1 - 1201**-0.84375)
    np.testing.assert_array_equal(histogram.values, np.arange(1, 1201))
    np.testing.assert_allclose(histogram.counts, -np.diff(tail) * 20_000_000, rtol=0, atol=1)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any), st.integers(0, 10**9))
def test_apportionment_sums_exactly_and_stays_within_one(weights: list[int], total: int) -> None:
    shares = np.array(weights) / sum(weights)
    counts = apportion(shares, total)
    assert counts.sum() == total
    assert np.all(np.abs(counts - shares * total) <= 1)


def test_ties_of_an_apportionment_go_to_the_first() -> None:
    assert apportion(np.array([0.25, 0.25, 0.25, 0.25]), 6).tolist() == [2, 2, 1, 1]


def test_presets_are_histograms() -> None:
    assert all(isinstance(preset(name), LengthHistogram) for name in preset_names())
