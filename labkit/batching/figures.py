"""WhatIf: the figures of one epoch under a policy, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.batching.group_figures import GroupFigures
from labkit.batching.pack_figures import PackingFigures
from labkit.batching.policy import BatchPolicy
from labkit.provenance import Origin


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What one epoch under a policy looks like. Every figure has its origin in ``provenance``.

    ``kept_events + events_lost`` is the number of events of the data set.

    Attributes:
        policy: the policy that was scored.
        sequences: sequences of the data set.
        events: events of the data set.
        padding_ratio: 1 - kept_events / slots, 0 without slots; ghost rows count.
        slots: cells of all rectangles of an epoch (strategies without padding: the events themselves).
        kept_events: events that reach the model.
        events_lost: events cut by a cap, a width or an edge, or dropped with their sequence.
        sequences_truncated: sequences that lose a part of their events.
        sequences_dropped: sequences left out whole.
        batches: batches of an epoch.
        shapes: distinct (rows, width) shapes of the batches.
        ghost_rows: empty rows added for static shapes.
        largest_batch_slots: slots of the largest batch.
        batches_over_budget: batches of a single row wider than the token budget.
        groups: the same by bucket, short to long (one for the strategies without buckets, none for jagged).
        provenance: origin of each figure, by field name.
        reason: why a figure is not exact, by field name.
        packs: packs in the batches of an epoch, ``slots / width`` of them; None where sequences are not packed.
        packing: more on the packs: the gap to the fewest, their balance, how much of them is one user; None likewise.
    """

    policy: BatchPolicy
    sequences: int
    events: int
    padding_ratio: float
    slots: int | float
    kept_events: int | float
    events_lost: int | float
    sequences_truncated: int | float
    sequences_dropped: int | float
    batches: int | float
    shapes: int
    ghost_rows: int
    largest_batch_slots: int
    batches_over_budget: int
    groups: tuple[GroupFigures, ...] = ()
    provenance: dict[str, Origin] = field(default_factory=dict)
    reason: dict[str, str] = field(default_factory=dict)
    packs: int | None = None
    packing: PackingFigures | None = None

    @property
    def truncated_share(self) -> float:
        """Users who lose events, by truncation or with their whole sequence, as a share of all."""
        return (self.sequences_truncated + self.sequences_dropped) / self.sequences

    @property
    def lost_share(self) -> float:
        """Events lost as a share of all, 0 without events; always shown beside ``truncated_share``."""
        return self.events_lost / self.events if self.events else 0.0


#: The fields of ``WhatIf`` that are figures.
FIGURES = (
    "padding_ratio",
    "slots",
    "kept_events",
    "events_lost",
    "sequences_truncated",
    "sequences_dropped",
    "batches",
    "shapes",
    "ghost_rows",
    "largest_batch_slots",
    "batches_over_budget",
)


def mark(
    provenance: dict[str, Origin],
    reason: dict[str, str],
    names: tuple[str, ...],
    why: str,
    origin: Origin = Origin.MODELLED,
) -> None:
    """Set the origin of figures and say why; what is modelled stays modelled."""
    for name in names:
        # an expectation of an expectation is still not exact: never turn modelled back
        if provenance[name] is Origin.EXACT:
            provenance[name] = origin
        reason[name] = why if name not in reason else f"{reason[name]}; {why}"
