"""What a tuned configuration records beside the policy: its figures with their origins, and what made it."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version

import numpy as np

from labkit.batching.what_if import FIGURES, WhatIf
from labkit.config.stored import plain
from labkit.errors import ConfigError
from labkit.provenance import Figure, Origin
from labkit.units import shown

_UNITS = {"slots": "slots", "largest_batch_slots": "slots", "kept_events": "events", "events_lost": "events"}
_ROUNDING = 1e-9


def figures_of(scored: WhatIf) -> dict[str, Figure]:
    """The figures of a what-if, and the two shares that are always shown together."""
    found = {
        name: Figure(
            plain(getattr(scored, name)), _UNITS.get(name, "1"), scored.provenance[name], scored.reason.get(name)
        )
        for name in FIGURES
    }
    if scored.packs is not None:
        found["packs"] = Figure(scored.packs, "1", scored.provenance["packs"], scored.reason.get("packs"))
    for name, value, source in (
        ("truncated_share", scored.truncated_share, "sequences_truncated"),
        ("lost_share", scored.lost_share, "events_lost"),
    ):
        found[name] = Figure(value, "1", found[source].origin, found[source].reason)
    return found


def check_figures(stored: Mapping[str, Figure], scored: WhatIf) -> None:
    """Compare stored figures with those of the policy on its own histogram.

    Exact figures must be the same, floats but for rounding. Modelled ones may differ from version to version: they must
    be numbers of 0 or more. Names that this version does not know are passed over, none that it knows may be missing.

    Raises:
        ConfigError: the first figure that is missing or another; the message has its field and both values.
    """
    faults = [fault for name, figure in figures_of(scored).items() if (fault := _fault(name, stored.get(name), figure))]
    if faults:
        others = len(faults) - 1
        more = f" ({others} more figure{'s' if others > 1 else ''} wrong)" if others else ""
        raise ConfigError(
            f"{faults[0]}{more}: the file was changed after its export. Export it again, with labkit tune or the panel."
        )


def _fault(name: str, stored: Figure | None, computed: Figure) -> str | None:
    """What is wrong with a stored figure; None where nothing is."""
    gives = "the policy on this histogram gives"
    if stored is None:
        return f"figures.{name} is missing, {gives} {computed.value!r}"
    for field in ("unit", "origin"):
        found, wanted = getattr(stored, field), getattr(computed, field)
        if found != wanted:
            return f"figures.{name}.{field} is {_word(found)}, expected {_word(wanted)}"
    if stored.value is None or (computed.origin is not Origin.EXACT and stored.value < 0):
        return (
            f"figures.{name}.value is {shown(stored.value)}, expected a number of 0 or more; {gives} {computed.value!r}"
        )
    if computed.origin is Origin.EXACT and not _same(stored.value, computed.value):
        return f"figures.{name}.value is {shown(stored.value)}, {gives} {computed.value!r}"
    return None


def _word(value: str | None) -> str:
    return "None" if value is None else shown(str(value))


def _same(stored: int | float, computed: int | float | None) -> bool:
    """Equal: a whole number to the last digit, a float but for the rounding of another machine."""
    if isinstance(computed, float):
        if abs(stored) > sys.float_info.max:  # an integer that is no float
            return False
        return math.isclose(stored, computed, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return stored == computed


def versions() -> dict[str, str]:
    """Versions of labkit, Python and NumPy, and of torch where it is loaded."""
    found = {"labkit": version("labkit"), "python": platform.python_version(), "numpy": np.__version__}
    if torch := sys.modules.get("torch"):  # never loaded for its number alone
        found["torch"] = str(getattr(torch, "__version__", "unknown"))
    return found
