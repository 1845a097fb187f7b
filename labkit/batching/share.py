"""Share: which part of an epoch one process asks for, and the figures that all of them share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labkit.batching.costs import DEFAULT_ALPHA
from labkit.batching.dealing import Remainder
from labkit.batching.fields import choice, whole_number
from labkit.errors import PolicyError

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


class Balance(StrEnum):
    """What decides who takes which batch of a step."""

    NONE = "none"  # every rank in turn
    SLOTS = "slots"  # batches of similar slots share a step; the largest goes to the rank with the least so far
    QUADRATIC = "quadratic"  # the same by L + alpha L**2: attention


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of an epoch is asked for: no field of the policy, whose file is the same on every cluster.

    Attributes:
        rank: of this process, 0 .. world_size - 1.
        world_size: processes that train together.
        remainder: what happens to batches that do not fill a last step.
        balance: what decides who takes which batch.
        alpha: weight of the squares in ``balance='quadratic'``.
    """

    rank: int = 0
    world_size: int = 1
    remainder: Remainder = Remainder.REPEAT
    balance: Balance = Balance.NONE
    alpha: float = DEFAULT_ALPHA

    @classmethod
    def checked(cls, rank: Any, world_size: Any, remainder: Any, balance: Any, alpha: Any) -> Self:
        """The share that was asked for, or PolicyError with the numbers."""
        world_size = whole_number("world_size", world_size)
        rank = whole_number("rank", rank, least=0)
        if rank >= world_size:
            raise PolicyError(
                f"rank {rank} does not exist: world_size is {world_size}, so ranks are 0 .. {world_size - 1}."
            )
        number = alpha.item() if isinstance(alpha, np.generic) else alpha
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise PolicyError(f"alpha must be a finite number of 0 or more: got {alpha!r}.")
        remainder = choice("remainder", remainder, Remainder)
        return cls(rank, world_size, remainder, choice("balance", balance, Balance), float(number))


@dataclass(frozen=True, slots=True)
class AllRanks:
    """The figures of all ranks together, the same on every rank.

    ``events + events_repeated == kept_events + events_lost``; each figure from ``batches`` on is the sum of those of
    the ranks.

    Attributes:
        world_size: ranks.
        remainder: what was done with batches that do not fill a last step.
        balance: what decided who takes which batch.
        steps: batches of the rank that has most of them.
        sequences: of the data set.
        events: of the data set.
        batches: batches dealt, repetitions included.
        slots: their slots.
        kept_events: events that reach a model, repetitions included.
        events_repeated: events that reach one once more.
        events_lost: events of the data set that reach none.
        sequences_repeated: places of sequences in repeated batches.
        sequences_truncated: sequences that lose a part.
        sequences_dropped: sequences in no batch.
        batches_over_budget: batches of a single row wider than the token budget.
        straggler: mean over the steps of the largest cost of a rank over the mean one; 1 is no waiting. Cost is slots,
            or what is balanced.
        epoch_straggler: the same ratio of whole epochs.
    """

    world_size: int
    remainder: Remainder
    balance: Balance
    steps: int
    sequences: int
    events: int
    batches: int
    slots: int
    kept_events: int
    events_repeated: int
    events_lost: int
    sequences_repeated: int
    sequences_truncated: int
    sequences_dropped: int
    batches_over_budget: int
    straggler: float
    epoch_straggler: float

    @classmethod
    def of_one(cls, plan: EpochPlan) -> Self:
        """The figures of a plan for a single process."""
        return cls(
            world_size=1,
            remainder=Remainder.REPEAT,
            balance=Balance.NONE,
            steps=len(plan),
            sequences=plan.order.size + plan.sequences_dropped if plan.lengths is None else plan.lengths.size,
            events=plan.kept_events + plan.events_lost,
            batches=len(plan),
            slots=plan.slots,
            kept_events=plan.kept_events,
            events_repeated=0,
            events_lost=plan.events_lost,
            sequences_repeated=0,
            sequences_truncated=plan.sequences_truncated,
            sequences_dropped=plan.sequences_dropped,
            batches_over_budget=plan.batches_over_budget,
            straggler=1.0,
            epoch_straggler=1.0,
        )
