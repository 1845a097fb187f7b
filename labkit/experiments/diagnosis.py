"""diagnose: which symptoms the compared strategies show, each with the numbers that gave it away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.batching.strategies import Strategy
from labkit.cost.devices import Gpu
from labkit.experiments.compare_rows import Compared
from labkit.experiments.symptoms import SYMPTOMS, Sign, Symptom


@dataclass(frozen=True, slots=True)
class Finding:
    """A symptom that at least one strategy shows.

    Attributes:
        symptom: with cause, check and remedy.
        signs: the strategies that show it, each with its number.
    """

    symptom: Symptom
    signs: tuple[tuple[Strategy, Sign], ...]


def diagnose(rows: Iterable[Compared], gpu: Gpu | None) -> tuple[Finding, ...]:
    """The symptoms that apply, in the order of the table.

    Args:
        rows: compared strategies.
        gpu: that is modelled.
    """
    shown = tuple(rows)
    found = []
    for symptom in SYMPTOMS:
        signs = tuple((row.strategy, sign) for row in shown if (sign := symptom.look(row, gpu)) is not None)
        if signs:
            found.append(Finding(symptom, signs))
    return tuple(found)
