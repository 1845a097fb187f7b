"""Report: the JSON of a run, whole on disk after every case.

    {"schema": "labkit.gpu_check/1", "environment": {...}, "started": UTC, "finished": UTC or null, "seconds": ...,
     "ok": no case failed, "items": [{"item", "title", "status", "seconds", "reason",
         "cases": [{"case", "ok": true | false | null, "seconds", "error" or "reason" or the case's own fields}],
         "not_reached": [names of cases]}],
     "bars": [{"bar", "case", "value", "wanted", "met"}]}

``ok`` of a case: true, it ran and what it checks held; false, it failed, ``error`` says how; null, it does not exist
here, ``reason`` says why. ``status`` of an item: ``running``, ``done``, ``out_of_time``, ``not_reached``. Times are
medians in seconds, with ``spread_s`` (distance of the quartiles) and ``n``. Fields are added, never renamed.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from labkit.errors import DataFileError
from labkit.files import write_whole

SCHEMA = "labkit.gpu_check/1"

Entry = dict[str, Any]


class Status(StrEnum):
    """Where an item is."""

    RUNNING = "running"
    DONE = "done"
    OUT_OF_TIME = "out_of_time"
    NOT_REACHED = "not_reached"


class Report:
    """What a run has found so far, and the file it is in.

    Attributes:
        path: of the JSON.
        data: what it holds.
    """

    def __init__(self, path: str | os.PathLike[str], environment: Mapping[str, Any]) -> None:
        """A new report; nothing is written before the first item.

        Args:
            path: of the JSON; an old file there is replaced.
            environment: device, versions, commit, clocks.
        """
        self.path = Path(path)
        self.data: Entry = {
            "schema": SCHEMA,
            "environment": dict(environment),
            "started": _now(),
            "finished": None,
            "seconds": 0.0,
            "ok": True,
            "items": [],
            "bars": [],
        }
        self._lock = threading.RLock()  # a watchdog may write while a case hangs

    @classmethod
    def resumed(cls, path: str | os.PathLike[str]) -> Report:
        """The report of a run whose process was lost, to be gone on with.

        Raises:
            DataFileError: there is no such report.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataFileError(f"no report to go on with in {os.fspath(path)!r}: {error}.") from error
        report = cls(path, data["environment"])
        report.data = data
        return report

    def begin(self, item: str, title: str) -> None:
        """An item begins, or goes on."""
        with self._lock:
            if self._find(item) is None:
                entry = {"item": item, "title": title, "status": "", "seconds": 0.0, "cases": [], "not_reached": []}
                self.data["items"].append(entry)
            self._of(item)["status"] = str(Status.RUNNING)
            self.write()

    def add(self, item: str, case: Entry) -> None:
        """A case is over."""
        with self._lock:
            self._of(item)["cases"].append(_finite(case))
            self.data["ok"] = self.data["ok"] and case["ok"] is not False
            self.write()

    def end(self, item: str, status: Status, seconds: float, not_reached: Sequence[str] = ()) -> None:
        """An item is over."""
        with self._lock:
            entry = self._of(item)
            entry |= {"status": str(status), "seconds": entry["seconds"] + seconds, "not_reached": list(not_reached)}
            self.write()

    def finish(self, seconds: float, bars: Sequence[Entry]) -> None:
        """The run is over."""
        with self._lock:
            self.data |= {"finished": _now(), "seconds": seconds, "bars": [_finite(bar) for bar in bars]}
            self.write()

    def cases(self, item: str) -> list[Entry]:
        """The cases of an item so far; none of one that has not begun."""
        entry = self._find(item)
        return [] if entry is None else list(entry["cases"])

    def write(self) -> None:
        """Put the whole report in its file."""
        with self._lock:
            write_whole(self.path, json.dumps(self.data, indent=1, allow_nan=False) + "\n")

    def _find(self, item: str) -> Entry | None:
        return next((entry for entry in self.data["items"] if entry["item"] == item), None)

    def _of(self, item: str) -> Entry:
        entry = self._find(item)
        if entry is None:
            raise KeyError(f"item {item!r} has not begun")
        return entry


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _finite(value: Any) -> Any:
    """The same with text in the place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(name): _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
