"""MeasureReport: the records of one measurement, the JSON that ``labkit measure --json`` prints and ``--out`` keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labkit.bench.record import Record
from labkit.errors import DataFileError
from labkit.files import reason_of, write_whole

_PARTS = ("device", "model", "data", "environment", "strategies")


@dataclass(frozen=True)
class MeasureReport:
    """What was measured of several strategies on one device.

    Attributes:
        device: what they ran on.
        model: what ran.
        data: what the samples were, in words.
        environment: versions, machine, commit and time, as text.
        strategies: a record each.
        settings: what was asked for: model, device, sequences, and the fields of ``Execution``; empty in a file of
            before they were kept.
        cancelled: it was interrupted: some of the strategies are missing.
    """

    device: str
    model: str
    data: str
    environment: dict[str, str]
    strategies: tuple[Record, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    cancelled: bool = False

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        data: str,
        settings: Mapping[str, Any] | None = None,
        *,
        cancelled: bool = False,
    ) -> MeasureReport:
        """Put records of one measurement together; ``settings`` and ``cancelled`` as above.

        Raises:
            ValueError: no record, or records of several devices or models.
        """
        own = tuple(records)
        if not own:
            raise ValueError("a report needs at least one record")
        # that of a process that died knows no environment, and the device only as it was asked for
        whole = [record for record in own if record.environment]
        first = whole[0] if whole else own[0]
        names = {(record.device, record.model) for record in whole}
        if len(names) > 1:
            raise ValueError(f"records of one report must be of one device and model: got {sorted(names)}")
        return cls(first.device, first.model, data, dict(first.environment), own, dict(settings or {}), cancelled)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, stable names."""
        return {
            "device": self.device,
            "model": self.model,
            "data": self.data,
            "settings": dict(self.settings),
            "cancelled": self.cancelled,
            "environment": self.environment,
            "strategies": [record.to_dict() for record in self.strategies],
        }

    @classmethod
    def from_dict(cls, data: Any) -> MeasureReport:
        """The inverse of ``to_dict``.

        Raises:
            DataFileError: something is missing or of another kind.
        """
        missing = [name for name in _PARTS if name not in data] if isinstance(data, dict) else list(_PARTS)
        if missing:
            raise DataFileError(
                f"this is no measurement: it lacks {', '.join(missing)}. Use what labkit measure --out wrote."
            )
        who = {name: data[name] for name in ("device", "model", "environment")}
        records = tuple(Record.from_dict(record, **who) for record in data["strategies"])
        settings, cancelled = dict(data.get("settings", {})), bool(data.get("cancelled", False))
        return cls(data["device"], data["model"], data["data"], dict(data["environment"]), records, settings, cancelled)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write strict JSON, whole or not at all. Raises ``DataFileError`` where it cannot be written."""
        return write_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MeasureReport:
        """Read what ``save`` wrote. It is what was written: ``recorded`` makes a stored run of it.

        Raises:
            DataFileError: no such file, not JSON, or no measurement.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataFileError(f"cannot read {os.fspath(path)!r}: {reason_of(error)}.") from None
        return cls.from_dict(data)

    def recorded(self) -> MeasureReport:
        """The same figures as a stored run: of origin ``recorded``, with device, date and commit in the reason."""
        known = self.environment
        note = f"recorded on {self.device}, {known.get('time', 'no date')}, commit {known.get('commit', 'unknown')}"
        records = tuple(record.recorded(note) for record in self.strategies)
        return replace(self, strategies=records)
