"""What-if results as the JSON that ``labkit what-if --json`` prints: stable field names, strict values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from labkit.batching.what_if import FIGURES, WhatIf
from labkit.experiments.what_if_model import NEEDS_A_MODEL, ModelChoice, Modelled
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin

_PACKS_NOTHING = "does not apply: this strategy packs no sequences together"

#: Fields that apply to packed sequences alone, and why they are null elsewhere.
OF_PACKS = {"packs": _PACKS_NOTHING, "packing": _PACKS_NOTHING}

#: Fields that cannot be known without a model, and why.
UNKNOWN = Modelled.nothing(NEEDS_A_MODEL)


def report(
    histogram: LengthHistogram,
    what_ifs: Iterable[WhatIf],
    modelled: Iterable[Modelled] | None = None,
    choice: ModelChoice | None = None,
) -> dict[str, Any]:
    """The whole JSON: data set, what was modelled, the bucket edges that the policies share, a record a strategy.

    Args:
        histogram: of the data set.
        what_ifs: results on it; ``bucket_edges`` are those of the first with buckets, null where there is none.
        modelled: what a model adds to each; None: no model was chosen.
        choice: what was modelled: ``model``, ``gpu``, ``mode``, ``precision`` and ``overheads``, null without one.
    """
    scored = tuple(what_ifs)
    of_model = [UNKNOWN] * len(scored) if modelled is None else list(modelled)
    edges = (s.policy.bucket_edges for s in scored if "bucket_edges" in s.policy.spec.fields)
    found = next(edges, None)
    return {
        "lengths": lengths_record(histogram),
        **choice_record(choice),
        "bucket_edges": None if found is None else list(found),
        "strategies": [strategy_record(s, m) for s, m in zip(scored, of_model, strict=True)],
    }


def choice_record(choice: ModelChoice | None) -> dict[str, Any]:
    """What was modelled, or null; ``precision`` and ``overheads`` mean nothing without a GPU."""
    if choice is None:
        return dict.fromkeys(("model", "gpu", "mode", "precision", "overheads"))
    return {
        "model": str(choice.model),
        "gpu": None if choice.gpu is None else choice.gpu.name,
        "mode": str(choice.mode),
        "precision": str(choice.precision),
        "overheads": asdict(choice.overheads),
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


def strategy_record(scored: WhatIf, modelled: Modelled = UNKNOWN) -> dict[str, Any]:
    """One strategy as plain JSON types: every figure, its origin and, where it is not exact or not there, the reason.

    Returns:
        ``strategy``, ``policy``, the figures, ``packs`` and ``packing`` (the figures of packs, null where nothing is
        packed), those of a model, ``bound`` (compute, bandwidth or launch) and ``fits`` (the peak is within the memory
        of the GPU), which are None where they do not exist;
        ``provenance`` has an entry for every figure that is there, ``reason`` one for every figure that is not, and for
        those that need a word.
    """
    of_model = {name: _plain(figure.value) for name, figure in modelled.figures.items()}
    origins = {name: str(figure.origin) for name, figure in modelled.figures.items() if figure.origin is not None}
    reasons = {name: figure.reason for name, figure in modelled.figures.items() if figure.reason is not None}
    bound = None if modelled.bound is None else str(modelled.bound)
    if bound is not None:
        origins["bound"] = str(Origin.MODELLED)
    if modelled.fits is None:
        reasons["fits"] = modelled.bound_reason
    else:
        origins["fits"] = str(Origin.MODELLED)
    packing = None if scored.packing is None else asdict(scored.packing)
    exact = {} if packing is None else {"packing": str(Origin.EXACT)}
    return {
        "strategy": str(scored.policy.strategy),
        "policy": {name: _plain(value) for name, value in scored.policy.to_dict().items()},
        **{name: _plain(getattr(scored, name)) for name in FIGURES},
        "packs": scored.packs,
        "packing": packing,
        **of_model,
        "bound": bound,
        "fits": modelled.fits,
        "provenance": {**{name: str(origin) for name, origin in scored.provenance.items()}, **exact, **origins},
        "reason": {
            **scored.reason,
            **(OF_PACKS if packing is None else {}),
            **reasons,
            "bound": modelled.bound_reason,
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
