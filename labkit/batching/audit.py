"""audit: what is really in a plan, counted anew from its arrays and the lengths, and held against what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from labkit.batching.strategies import Strategy
from labkit.errors import PolicyError
from labkit.lengths.validate import checked_lengths
from labkit.provenance import Origin

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


@dataclass(frozen=True, slots=True)
class BucketAudit:
    """One bucket, counted.

    Attributes:
        edge: longest length of the bucket; None: above the last edge, where ``overflow='drop'`` leaves sequences out.
        width: padded width; None as above.
        sequences: sequences that belong to it.
        batches: its batches.
        slots: cells of its rectangles.
        kept_events: events in them.
        padding_ratio: 1 - kept_events / slots, 0 without slots.
        ghost_rows: rows without a sequence.
        sequences_truncated: sequences in a batch that lose a part.
        events_lost: events that are in no batch.
        sequences_dropped: sequences in no batch.
        sequences_repeated: places of sequences that are in a batch already.
        events_repeated: their events.
    """

    edge: int | None
    width: int | None
    sequences: int
    batches: int
    slots: int
    kept_events: int
    padding_ratio: float
    ghost_rows: int
    sequences_truncated: int
    events_lost: int
    sequences_dropped: int | None
    sequences_repeated: int
    events_repeated: int


@dataclass(frozen=True, slots=True)
class Audit:
    """A plan, counted. ``events + events_repeated == kept_events + events_lost`` where all ranks are looked at.

    Of one rank among several, ``events_lost`` are those cut from the sequences that it has; what is in no batch of any
    rank shows in ``audit_ranks``.

    Attributes:
        strategy: of the plan.
        world_size: ranks that share the epoch.
        ranks: those whose plans were counted.
        sequences: of the data set.
        events: of the data set.
        batches: number of batches.
        shapes: distinct (rows, width) shapes; without padding (rows, events).
        rows_min: rows of the batch with the fewest; None without batches.
        rows_max: rows of the batch with the most.
        slots: cells of all batches.
        kept_events: events in them.
        padding_ratio: 1 - kept_events / slots, 0 without slots.
        ghost_rows: rows without a sequence.
        sequences_seen: sequences in at least one batch.
        sequences_once: sequences of which nothing is in two batches.
        coverage: sequences_seen / sequences.
        sequences_truncated: users cut: sequences in a batch that lose a part.
        events_lost: events that are in no batch.
        sequences_dropped: sequences in no batch; None where not all ranks are looked at.
        sequences_repeated: places of sequences that are in a batch already.
        events_repeated: their events.
        overshoot: most that a batch is above the token budget; None for strategies without one.
        batches_over_budget: batches above it.
        straggler: mean over the steps of the most slots of a rank over the mean; 1 is no waiting.
        epoch_straggler: the same ratio of whole epochs.
        lag1: correlation of the longest row of a batch with that of the next; None where there is none.
        buckets: the same by bucket, short to long; empty for strategies filled by events or packs.
        advice: one sentence.
        warnings: what a user should know.
        faults: what is wrong with the plan: rules broken, figures that are not what was counted.
        reason: why a figure is None, by field name.
    """

    strategy: Strategy
    world_size: int
    ranks: tuple[int, ...]
    sequences: int
    events: int
    batches: int
    shapes: int
    rows_min: int | None
    rows_max: int | None
    slots: int
    kept_events: int
    padding_ratio: float
    ghost_rows: int
    sequences_seen: int
    sequences_once: int
    coverage: float
    sequences_truncated: int
    events_lost: int
    sequences_dropped: int | None
    sequences_repeated: int
    events_repeated: int
    overshoot: int | None
    batches_over_budget: int
    straggler: float
    epoch_straggler: float
    lag1: float | None
    buckets: tuple[BucketAudit, ...]
    advice: str
    warnings: tuple[str, ...]
    faults: tuple[str, ...]
    reason: dict[str, str]

    @property
    def ok(self) -> bool:
        """Nothing is wrong with the plan."""
        return not self.faults

    @property
    def truncated_share(self) -> float | None:
        """Users who lose events, by truncation or whole, as a share of all; None as ``sequences_dropped``."""
        if self.sequences_dropped is None:
            return None
        return (self.sequences_truncated + self.sequences_dropped) / self.sequences

    @property
    def lost_share(self) -> float:
        """Events lost as a share of all; always shown beside ``truncated_share``."""
        return self.events_lost / self.events if self.events else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Every figure as plain JSON types, with ``provenance``: all are counted, so exact."""
        plain = {k: str(v) if isinstance(v, StrEnum) else v for k, v in asdict(self).items()}
        found = {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}
        found |= {"ok": self.ok, "truncated_share": self.truncated_share, "lost_share": self.lost_share}
        numbers = (k for k, v in found.items() if isinstance(v, int | float) and not isinstance(v, bool))
        return found | {"provenance": dict.fromkeys(numbers, str(Origin.EXACT))}


def audit_ranks(plans: Sequence[EpochPlan], lengths: ArrayLike | None = None) -> Audit:
    """Count what is in the plans of all ranks together.

        audit_ranks([plan_epoch(lengths, policy, rank=r, world_size=8) for r in range(8)]).faults

    Args:
        plans: of one epoch: one for each rank, or the plan of a single one (``plan.audit()``).
        lengths: (N,) that they were made of; None: those that the plan keeps.

    Raises:
        PolicyError: no plan, plans of different epochs, a rank twice, or no lengths.
        LengthsError: lengths that are none.

    Cost: O(N + n) for n places in the plans, chunked; 13 bytes a sequence (49 where they are packed).
    """
    from labkit.batching.audit_figures import audited  # not at the top: it makes the classes above

    if not plans:
        raise PolicyError("no plan to audit: pass one, or those of all ranks.")
    found = {plan.rank for plan in plans}
    if len(found) < len(plans) or any(_epoch_of(plan) != _epoch_of(plans[0]) for plan in plans):
        said = ", ".join(f"{plan.rank} of {plan.world_size}" for plan in plans)
        raise PolicyError(f"these plans are not of one epoch, each rank once: got ranks {said}.")
    lengths = plans[0].lengths if lengths is None else lengths
    if lengths is None:
        raise PolicyError("this plan keeps no lengths: pass those that it was made of.")
    return audited(list(plans), checked_lengths(lengths))


def _epoch_of(plan: EpochPlan) -> tuple[Any, ...]:
    return plan.policy, plan.world_size, plan.dealt
