"""What a benchmark is, what it measures, and when its bar is met."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.timing import Pairs, Samples


@dataclass(frozen=True)
class Measurement:
    """What a benchmark found.

    Attributes:
        unit: of the samples, "s" or "bytes".
        own: samples of labkit.
        ratio: labkit over the reference; None where there is no reference.
        reference: samples of the reference, in the same unit.
        detail: sizes, and how it was measured.
    """

    unit: str
    own: Samples
    detail: str
    ratio: float | None = None
    reference: Samples | None = None

    @classmethod
    def of_pairs(cls, pairs: Pairs, detail: str) -> Measurement:
        return cls("s", pairs.own, detail, ratio=pairs.ratio, reference=pairs.reference)


@dataclass(frozen=True)
class Bar:
    """The most, or the least, that may be measured: a ratio to the reference (unit None), or a median in a unit."""

    limit: float
    unit: str | None = None
    least: bool = False

    def met_by(self, found: Measurement) -> bool:
        """False for a missing or unmeasurable figure too."""
        value = found.ratio if self.unit is None else found.own.median
        if self.unit is not None and found.unit != self.unit:
            raise ValueError(f"the bar is in {self.unit}, the measurement in {found.unit}")
        if value is None or not math.isfinite(value):
            return False
        return value >= self.limit if self.least else value <= self.limit


@dataclass(frozen=True)
class Benchmark:
    """One line of the table.

    Attributes:
        name: for ``--only``.
        what: what is measured, against what.
        bar: what it must reach.
        run: measures it; the argument is True for small sizes.
    """

    name: str
    what: str
    bar: Bar
    run: Callable[[bool], Measurement]


@dataclass(frozen=True)
class Outcome:
    """A benchmark that has been run: a measurement, or the error that ended it."""

    benchmark: Benchmark
    found: Measurement | None
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.found is not None and self.benchmark.bar.met_by(self.found)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; what was not measured is null."""
        found, reference = self.found, self.found.reference if self.found else None
        return {
            "name": self.benchmark.name,
            "what": self.benchmark.what,
            "unit": found.unit if found else None,
            "median": found.own.median if found else None,
            "spread": found.own.spread if found else None,
            "n": len(found.own.values) if found else 0,
            "samples": list(found.own.values) if found else [],
            "reference_median": reference.median if reference else None,
            "reference_samples": list(reference.values) if reference else [],
            "ratio": found.ratio if found else None,
            "bar": self.benchmark.bar.limit,
            "bar_is": "least" if self.benchmark.bar.least else "most",
            "bar_unit": self.benchmark.bar.unit,
            "ok": self.ok,
            "detail": found.detail if found else None,
            "error": self.error,
        }
