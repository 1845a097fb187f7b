"""Recorded runs: what ``labkit gpu-check`` found on a GPU some day, for machines that have none."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.bench.record import Record
from labkit.errors import DataFileError
from labkit.files import reason_of
from labkit.provenance import Figure, Origin

_PACKAGE = Path(__file__).resolve().parents[1]

#: Inside the package once it is installed, at the root of the repository in a checkout.
_FOLDERS = (_PACKAGE / "data" / "recorded", _PACKAGE.parent / "data" / "recorded")

#: What ``labkit.gpu_check.report`` writes into its files.
_SCHEMA = "labkit.gpu_check/1"

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run on one device.

    Attributes:
        path: of its JSON.
        device: name of the GPU.
        date: UTC, ``2026-12-01T10:00:00Z``.
        commit: short hash; ``+`` behind it: the tree differed.
        data: the whole report.
    """

    path: Path
    device: str
    date: str
    commit: str
    data: Mapping[str, Any]

    @property
    def note(self) -> str:
        """Where the figures come from, in words."""
        return f"recorded on {self.device}, {self.date}, commit {self.commit}"

    def cases(self, item: str) -> tuple[Case, ...]:
        """The cases of an item that ran and held; empty where there are none."""
        found = next((entry for entry in self.data["items"] if entry["item"] == item), None)
        return () if found is None else tuple(case for case in found["cases"] if case["ok"])

    def op_times(self) -> dict[tuple[str, str], dict[str, Figure]]:
        """Figures of each timed op by (op, law of the lengths).

        Returns:
            ``median_s``, ``spread_s``, ``share_of_copy``, ``speedup`` over the best way of torch; recorded, or None
            with a reason.
        """
        return {
            (case["op"], case["lengths"]): {name: self._figure(case, name, unit) for name, unit in _OP_FIGURES.items()}
            for case in self.cases("ops")
        }

    def strategies(self) -> tuple[Record, ...]:
        """The records of DIN under each strategy, of origin recorded."""
        environment = {name: str(value) for name, value in self.data["environment"].items()}
        return tuple(
            Record.from_dict(case, device=self.device, model="din", environment=environment).recorded(self.note)
            for case in self.cases("strategies")
        )

    def _figure(self, case: Case, name: str, unit: str) -> Figure:
        value = case.get(name)
        if value is None:
            return Figure(None, unit, None, f"not in the run {self.note}")
        return Figure(value, unit, Origin.RECORDED, f"{self.note}: {case['rows']} rows, {case['events']} events")


_OP_FIGURES = {"median_s": "s", "spread_s": "s", "share_of_copy": "1", "speedup": "1"}


def recorded_runs(folder: str | os.PathLike[str] | None = None) -> tuple[RecordedRun, ...]:
    """The recorded runs, the newest first; empty where none has been recorded.

    Args:
        folder: of the JSON files; None: those that labkit brings.

    Raises:
        DataFileError: a JSON file in the folder is no recorded run.
    """
    folders = _FOLDERS if folder is None else (Path(folder),)
    found = [read_run(path) for place in folders if place.is_dir() for path in sorted(place.glob("*.json"))]
    return tuple(sorted(found, key=lambda run: run.date, reverse=True))


def read_run(path: str | os.PathLike[str]) -> RecordedRun:
    """Read one file.

    Raises:
        DataFileError: it cannot be read, or is no recorded run of a GPU.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFileError(f"cannot read {os.fspath(path)!r}: {reason_of(error)}.") from None
    known = data.get("environment", {}) if isinstance(data, dict) else {}
    missing = [name for name in ("gpu", "commit") if name not in known]
    if not isinstance(data, dict) or data.get("schema") != _SCHEMA or missing or "started" not in data:
        raise DataFileError(
            f"{os.fspath(path)!r} is no run recorded on a GPU: expected schema {_SCHEMA}, started, and an environment "
            "with gpu and commit. Use what labkit gpu-check wrote."
        )
    return RecordedRun(Path(path), known["gpu"], data["started"], known["commit"], data)
