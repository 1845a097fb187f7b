"""What-if results as the JSON that ``labkit what-if --json`` prints: stable field names, strict values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from labkit.batching.what_if import FIGURES, WhatIf
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin

_PACKS_NOTHING = "does not apply: this strategy packs no sequences together"
_NEEDS_A_MODEL = "needs a model: lengths and a policy do not tell it"

#: Fields that apply to packed sequences alone, and why they are null elsewhere.
OF_PACKS = {"packs": _PACKS_NOTHING, "packing": _PACKS_NOTHING}

#: Fields that cannot be known here, and why.
UNKNOWN = {
    "launches": _NEEDS_A_MODEL,
    "kernels": _NEEDS_A_MODEL,
    "peak_bytes": _NEEDS_A_MODEL,
    "time_s": _NEEDS_A_MODEL,
    "utilization": _NEEDS_A_MODEL,
}


def report(histogram: LengthHistogram, what_ifs: Iterable[WhatIf]) -> dict[str, Any]:
    """The whole JSON: the data set, the bucket edges that the policies share, and a record a strategy.

    Args:
        histogram: of the data set.
        what_ifs: results on it; ``bucket_edges`` are those of the first with buckets, null where there is none.
    """
    scored = tuple(what_ifs)
    edges = (s.policy.bucket_edges for s in scored if "bucket_edges" in s.policy.spec.fields)
    found = next(edges, None)
    return {
        "lengths": lengths_record(histogram),
        "bucket_edges": None if found is None else list(found),
        "strategies": [strategy_record(s) for s in scored],
    }


def lengths_record(histogram: LengthHistogram) -> dict[str, Any]:
    """The data set in five numbers."""
    return {
        "sequences": histogram.sequences,
        "events": histogram.events,
        "max": histogram.max,
        "mean": histogram.mean,
        "distinct": histogram.distinct,
    }


def strategy_record(scored: WhatIf) -> dict[str, Any]:
    """One strategy as plain JSON types: every figure, its origin and, where it is not exact or not there, the reason.

    Returns:
        ``strategy``, ``policy``, the figures, ``packs`` and ``packing`` (the figures of packs, null where nothing is
        packed), those that cannot be known as None; ``provenance`` has an entry for every figure that is there,
        ``reason`` one for every figure that is not, and for those that need a word.
    """
    packing = None if scored.packing is None else asdict(scored.packing)
    exact = {} if packing is None else {"packing": str(Origin.EXACT)}
    return {
        "strategy": str(scored.policy.strategy),
        "policy": {name: _plain(value) for name, value in scored.policy.to_dict().items()},
        **{name: _plain(getattr(scored, name)) for name in FIGURES},
        "packs": scored.packs,
        "packing": packing,
        **dict.fromkeys(UNKNOWN),
        "provenance": {**{name: str(origin) for name, origin in scored.provenance.items()}, **exact},
        "reason": {**scored.reason, **(OF_PACKS if packing is None else {}), **UNKNOWN},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
