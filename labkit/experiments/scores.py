"""Scores: every strategy of a lineup on one histogram, each with its figures or with the line that says why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from labkit.batching.edges import Edges
from labkit.batching.group_figures import GroupFigures
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from labkit.batching.what_if import WhatIf, what_if
from labkit.errors import LabkitError
from labkit.experiments.lineup import Lineup
from labkit.experiments.what_if_model import ModelChoice, Modelled, modelled
from labkit.lengths.histogram import LengthHistogram


@dataclass(frozen=True, slots=True)
class Score:
    """One strategy: its figures, or the reason why it cannot run on these lengths with these settings.

    Attributes:
        strategy: its key.
        policy: what it would run; None where the settings make no valid policy.
        what_if: its figures; None with ``error``.
        error: one line with the number and the fix; None with ``what_if``.
        modelled: what the chosen model and GPU add; None where none was chosen, or there are no figures.
    """

    strategy: Strategy
    policy: BatchPolicy | None
    what_if: WhatIf | None
    error: str | None
    modelled: Modelled | None = None

    @property
    def slots_per_event(self) -> float:
        """Slots computed for each event kept: 1 is no padding; infinite without events or figures."""
        if self.what_if is None or not self.what_if.kept_events:
            return float("inf")
        return self.what_if.slots / self.what_if.kept_events


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """All strategies of a lineup on one data set.

    Attributes:
        edges: the bucket edges that were used; None where no bucket strategy was asked for or none were found.
        scores: one a strategy, in the order asked.
        choice: the model and GPU; None: none was chosen.
    """

    edges: Edges | None
    scores: tuple[Score, ...]
    choice: ModelChoice | None = None

    def __getitem__(self, strategy: Strategy) -> Score:
        """The score of one strategy."""
        return next(s for s in self.scores if s.strategy is strategy)

    @property
    def groups(self) -> tuple[GroupFigures, ...]:
        """Figures of each bucket, from the first bucket strategy that fits; empty where none does."""
        fits = (s.what_if for s in self.scores if STRATEGIES[s.strategy].batching is Batching.BUCKETS)
        return next((w.groups for w in fits if w is not None), ())


def score(
    histogram: LengthHistogram,
    lineup: Lineup,
    strategies: Iterable[Strategy] = tuple(Strategy),
    choice: ModelChoice | None = None,
) -> Scoreboard:
    """Score the strategies of a lineup; one that does not fit does not stop the others.

    Args:
        histogram: of the data set.
        lineup: settings for all.
        strategies: those to score, in this order.
        choice: a model, perhaps for a GPU, whose figures are added.

    Cost: that of the edges (once), and O(m) a strategy; a few milliseconds for 4096 distinct lengths, and a few more
        for the figures of a model that was traced before.
    """
    keys = tuple(strategies)
    edges: Edges | None = None
    problem = ""
    if any(STRATEGIES[k].batching is Batching.BUCKETS for k in keys):
        try:
            edges = lineup.edges(histogram)
        except LabkitError as error:
            problem = str(error)
    scores = (_score(histogram, lineup, key, edges, problem) for key in keys)
    if choice is None:
        return Scoreboard(edges, tuple(scores))
    return Scoreboard(edges, tuple(_with_model(s, histogram, choice) for s in scores), choice)


def _with_model(found: Score, histogram: LengthHistogram, choice: ModelChoice) -> Score:
    if found.what_if is None:
        return found
    return replace(found, modelled=modelled(found.what_if, histogram, choice))


def _score(histogram: LengthHistogram, lineup: Lineup, key: Strategy, edges: Edges | None, problem: str) -> Score:
    if edges is None and STRATEGIES[key].batching is Batching.BUCKETS:
        return Score(key, None, None, problem)
    policy = None
    try:
        policy = lineup.policy(key, edges if STRATEGIES[key].batching is Batching.BUCKETS else None)
        return Score(key, policy, what_if(histogram, policy), None)
    except LabkitError as error:
        return Score(key, policy, None, str(error))


def ranked(scores: Iterable[Score]) -> list[Score]:
    """Scores from the least work for each event kept to the most; those without figures last."""
    return sorted(scores, key=lambda s: s.slots_per_event)
