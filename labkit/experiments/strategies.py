"""Notebook 02: every strategy planned on one data set, what a cap cuts, what batching does to training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.audit import Audit
from labkit.batching.fields import whole_number
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import DEFAULT_ROWS, DEFAULT_TOKEN_BUDGET
from labkit.batching.strategies import Strategy
from labkit.errors import LabkitError
from labkit.experiments.budget_rule import BudgetUse, compare_budget_rules
from labkit.experiments.lineup import DEFAULT_BUCKETS, Lineup
from labkit.experiments.scores import score
from labkit.experiments.source import check_data, open_source, require_source
from labkit.experiments.training_effect import OrderEffect, compare_orders, sample_lengths
from labkit.experiments.truncation_sides import CapPoint, cap_curve, default_caps
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that notebook 02 can be asked for; its parameters cell, one to one.

    Attributes:
        preset: name of a data set.
        lengths_file: path of a file of lengths or events, which wins over the preset; None: no file.
        user_column: column that names the user, where the file is an event table.
        buckets: most buckets.
        token_budget: slots (padded) or events (jagged) a batch.
        rows: sequences a batch in the strategies with fixed rows.
        max_length: truncation cap; None: no cap.
        planned_sequences: most sequences that are planned for real; more are sampled down to it.
        trained_sequences: made-up histories that the small model is trained on.
        epochs: passes over them.
        seed: of samples, shuffles and the model.
    """

    preset: str = "cdnow"
    lengths_file: str | None = None
    user_column: str | None = None
    buckets: int = DEFAULT_BUCKETS
    token_budget: int = DEFAULT_TOKEN_BUDGET
    rows: int = DEFAULT_ROWS
    max_length: int | None = None
    planned_sequences: int = 200_000
    trained_sequences: int = 6_000
    epochs: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no data could make right, before any is read.

        Raises:
            PolicyError, LengthsError: a value out of its range; DataFileError: a preset that does not exist.
        """
        for name in ("buckets", "token_budget", "rows", "planned_sequences", "trained_sequences", "epochs"):
            whole_number(name, getattr(self, name))
        whole_number("seed", self.seed, least=0)
        if self.max_length is not None:
            whole_number("max_length", self.max_length, most=MAX_LENGTH)
        check_data(self.preset, self.lengths_file, self.user_column)

    def check_files(self) -> None:
        """Look whether the file of lengths is there, without reading it.

        Raises:
            DataFileError: it is not, or the system does not let us look.
        """
        if self.lengths_file is not None:
            require_source(self.lengths_file)

    @property
    def lineup(self) -> Lineup:
        """The settings that all strategies share."""
        return Lineup(buckets=self.buckets, token_budget=self.token_budget, rows=self.rows, max_length=self.max_length)


@dataclass(frozen=True, slots=True)
class Planned:
    """One strategy, planned for real.

    Attributes:
        strategy: its key.
        audit: what was counted in its plan; None with ``error``.
        error: why there is no plan.
    """

    strategy: Strategy
    audit: Audit | None
    error: str | None


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """What was found.

    Attributes:
        config: what was asked.
        histogram: the lengths.
        caps: what each cap costs, on each side.
        planned: every strategy planned on one data set.
        budgets: the rule of thumb beside the hard budgets.
        orders: what each order of the data does to training.
    """

    config: Config
    histogram: LengthHistogram
    caps: tuple[CapPoint, ...]
    planned: tuple[Planned, ...]
    budgets: tuple[BudgetUse, ...]
    orders: tuple[OrderEffect, ...]

    @property
    def finding(self) -> str:
        """One sentence from the numbers above."""
        rule = self.budgets[0]
        first, *_, last = self.orders
        return (
            f"The rule budget // mean length went up to {rule.most_slots / self.config.token_budget:.1f} times the "
            f"budget where the hard budgets stayed within it. Noise of a batch's gradient: {first.gradient_noise:.2f} "
            f"in {first.order} order, {last.gradient_noise:.2f} {last.order} by length."
        )


def run(config: Config) -> Result:
    """Plan, cut and train.

    Raises:
        LabkitError: data that cannot be read, a budget below the longest length.

    Cost: some ten seconds with the defaults on two CPU cores, most of it training.
    """
    if config.lengths_file is not None:
        histogram = open_source(config.lengths_file, user=config.user_column)
    else:
        histogram = open_source(config.preset)
    lengths = sample_lengths(histogram, config.planned_sequences, config.seed)
    short = np.minimum(sample_lengths(histogram, config.trained_sequences, config.seed), 200)
    return Result(
        config=config,
        histogram=histogram,
        caps=cap_curve(histogram, default_caps(histogram)),
        planned=plan_all(lengths, config.lineup, config.seed),
        budgets=compare_budget_rules(lengths, config.token_budget, buckets=config.buckets, seed=config.seed),
        orders=compare_orders(short, buckets=config.buckets, epochs=config.epochs, seed=config.seed),
    )


def plan_all(lengths: NDArray[np.int64], lineup: Lineup, seed: int) -> tuple[Planned, ...]:
    """Plan one epoch with every strategy and count what is in it; one that does not fit says why."""
    board = score(LengthHistogram.from_lengths(lengths), lineup)
    planned = []
    for scored in board.scores:
        if scored.policy is None or scored.error is not None:
            planned.append(Planned(scored.strategy, None, scored.error))
            continue
        try:
            planned.append(Planned(scored.strategy, plan_epoch(lengths, scored.policy, seed=seed).audit(), None))
        except LabkitError as error:
            planned.append(Planned(scored.strategy, None, str(error)))
    return tuple(planned)
