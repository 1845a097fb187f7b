"""What a tuned configuration records beside the policy: its figures with their origins, and what made it."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

import numpy as np

from labkit.batching.what_if import FIGURES, WhatIf
from labkit.config.stored import plain
from labkit.provenance import Figure

_UNITS = {"slots": "slots", "largest_batch_slots": "slots", "kept_events": "events", "events_lost": "events"}


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


def versions() -> dict[str, str]:
    """Versions of labkit, Python and NumPy, and of torch where it is loaded."""
    found = {"labkit": version("labkit"), "python": platform.python_version(), "numpy": np.__version__}
    if torch := sys.modules.get("torch"):  # never loaded for its number alone
        found["torch"] = str(getattr(torch, "__version__", "unknown"))
    return found
