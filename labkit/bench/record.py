"""Record: what was measured of one strategy, every figure with its unit, its origin and, where there is none, why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from labkit.errors import DataFileError
from labkit.provenance import Figure, Origin

#: The figures that every record has, with or without a value. Per epoch, unless the name says otherwise.
FIGURES: dict[str, str] = {  # name -> unit
    "epoch_s": "s",
    "epoch_error_s": "s",  # standard error, where not all batches were timed
    "events_per_s": "events/s",  # real events: padding and ghost rows count nothing
    "padding_ratio": "1",
    "peak_bytes": "bytes",
    "launches": "1",
    "kernels": "1",
    "utilization": "1",
    "n": "1",
    "median_s": "s",
    "spread_s": "s",
    "events": "events",  # that the plan keeps
    "slots": "slots",
    "batches": "1",
    "loader_wait_share": "1",
    "host_gap_share": "1",
    "copied_bytes": "bytes",
    "energy_j": "J",
    "allocated_bytes": "bytes",
    "reserved_bytes": "bytes",
    "device_used_bytes": "bytes",
    "fragmentation": "1",
    "loss": "1",
    "loss_float32": "1",
    "loss_difference": "1",
    "recompiles": "1",
    "graph_captures": "1",
    "graph_replays": "1",
    "graph_fallbacks": "1",
}

#: Those that records of earlier versions lack.
_LATER = {"epoch_error_s"}


@dataclass(frozen=True, eq=True)
class Record:
    """What was measured of one strategy.

    Each figure is an attribute too, its value alone: ``record.epoch_s`` is ``record.figures["epoch_s"].value``.

    Attributes:
        strategy: key of what was measured.
        policy: its settings, plain JSON types.
        device: what it ran on.
        model: what ran.
        environment: versions, machine, commit and time, as text.
        figures: by name; those of ``FIGURES`` are all there, observers add more.
    """

    strategy: str
    policy: Mapping[str, Any]
    device: str
    model: str
    environment: Mapping[str, str]
    figures: Mapping[str, Figure]

    def __post_init__(self) -> None:
        """Refuse a record that lacks a figure: one that does not exist is a figure without a value."""
        missing = [name for name in FIGURES if name not in self.figures]
        if missing:
            raise ValueError(f"a record of {self.strategy} lacks {', '.join(missing)}: give a Figure with a reason")

    @classmethod
    def failed(cls, reason: str, *, figures: Mapping[str, Figure] | None = None, **who: Any) -> Record:
        """A record of what could not be measured.

        Args:
            reason: why, for every figure that is not given.
            figures: those that are known all the same.
            who: ``strategy``, ``policy``, ``device``, ``model``, ``environment``.
        """
        known = dict(figures or {})
        none = {name: Figure(None, unit, None, reason) for name, unit in FIGURES.items()}
        return cls(**who, figures={**none, **known})

    def __getattr__(self, name: str) -> int | float | None:
        """The value of a figure."""
        figures = self.__dict__.get("figures", {})  # absent while a pickled record is being rebuilt
        if name not in figures:
            raise AttributeError(f"a record has no figure {name!r}; it has {', '.join(figures)}")
        value: int | float | None = figures[name].value
        return value

    @property
    def ok(self) -> bool:
        """Its epoch has a time."""
        return self.figures["epoch_s"].value is not None

    @property
    def timed(self) -> bool:
        """Steps of it were timed, perhaps too few for the time of an epoch."""
        return self.ok or self.figures["n"].value is not None

    @property
    def provenance(self) -> dict[str, Origin]:
        """Origin of every figure that has a value."""
        return {name: f.origin for name, f in self.figures.items() if f.value is not None and f.origin is not None}

    @property
    def reason(self) -> dict[str, str]:
        """Why a figure is missing, and what must be known of one that is there."""
        return {name: f.reason for name, f in self.figures.items() if f.reason}

    def recorded(self, note: str) -> Record:
        """The same figures, no longer measured now: what was measured becomes recorded.

        Args:
            note: device, date and commit, put before the reason of each of them.
        """
        figures = {
            name: replace(f, origin=Origin.RECORDED, reason=note if f.reason is None else f"{note}; {f.reason}")
            if f.origin is Origin.MEASURED
            else f
            for name, f in self.figures.items()
        }
        return replace(self, figures=figures)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; without device, model and environment, which a file says once."""
        return {
            "strategy": self.strategy,
            "policy": dict(self.policy),
            **{name: f.value for name, f in self.figures.items()},
            "unit": {name: f.unit for name, f in self.figures.items()},
            "provenance": {name: str(origin) for name, origin in self.provenance.items()},
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, device: str, model: str, environment: Mapping[str, str]) -> Record:
        """The inverse of ``to_dict``.

        Raises:
            DataFileError: something is missing or of another kind.
        """
        try:
            origins, reasons = data["provenance"], data["reason"]
            figures = {
                name: Figure(data[name], unit, _origin(origins.get(name)), reasons.get(name))
                for name, unit in data["unit"].items()
            }
            for name in _LATER - figures.keys():
                figures[name] = Figure(None, FIGURES[name], None, "not there when this was recorded")
            return cls(data["strategy"], dict(data["policy"]), device, model, dict(environment), figures)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataFileError(f"this is no record of a measurement: {why}. Use what labkit measure wrote.") from None


def _origin(key: str | None) -> Origin | None:
    return None if key is None else Origin(key)
