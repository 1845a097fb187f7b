"""EpochPlan: one epoch as flat arrays, what a sampler walks through and an audit counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.batching.audit import Audit, audit_ranks
from labkit.batching.policy import BatchPolicy
from labkit.batching.share import AllRanks
from labkit.batching.strategies import Batching, Layout


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """One epoch: which sequences are in which batch, and the shape of each batch.

        order 4 0 | 2 | 1 3     batch_offsets 0 2 3 5     padded_lengths 8 64 8     rows 2 1 2

    Iterating gives an int64 index array a batch (a view of ``order``); ``len`` is the number of batches. Indices never
    contain ghosts: ``rows[i]`` may be larger than the number of indices, and the collate appends empty rows.

    Attributes:
        policy: the policy it was planned with.
        order: (n,) int64, indices of the sequences, batch after batch; each sequence at most once (packed: each piece).
        batch_offsets: (B + 1,) int64, batch i is ``order[batch_offsets[i]:batch_offsets[i + 1]]``.
        padded_lengths: (B,) int64, padded width of each batch (without padding: its longest row).
        rows: (B,) int64, rows of its shape, ghost rows included.
        batch_slots: (B,) int64, rows x width (without padding: the sum of its lengths).
        kept_events: events that reach the model.
        events_lost: events that do not; ``kept_events + events_lost`` are the events of the data set.
        sequences_truncated: sequences that lose a part.
        sequences_dropped: sequences in no batch.
        batches_over_budget: batches of a single row wider than the token budget.
        rank: of the process that it is for. On several ranks the figures are those of this one, and they add up over
            the ranks to ``all_ranks``; what is in no batch of any rank counts on the one that would have had it, or
            on rank 0.
        world_size: ranks.
        sequences_repeated: places of sequences in batches that another rank has too.
        events_repeated: their kept events, part of ``kept_events``.
        dealt: figures of all ranks together; None on a single one, where ``all_ranks`` still has them.
        lengths: (N,) that it was made of, not copied; ``audit`` counts with them.
        pack_offsets: (P + 1,) int64, pack p is ``order[pack_offsets[p]:pack_offsets[p + 1]]``; batch i has ``rows[i]``
            of them. None where sequences are not packed, as the next two.
        event_start: (n,) int64, first event of each piece in its sequence.
        event_stop: (n,) int64, the event after its last one. A sequence that is split is in ``order`` once a piece.
    """

    policy: BatchPolicy
    order: NDArray[np.int64]
    batch_offsets: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    batch_slots: NDArray[np.int64]
    kept_events: int
    events_lost: int
    sequences_truncated: int
    sequences_dropped: int
    batches_over_budget: int
    rank: int = 0
    world_size: int = 1
    sequences_repeated: int = 0
    events_repeated: int = 0
    dealt: AllRanks | None = None
    lengths: NDArray[np.integer] | None = field(default=None, repr=False)
    pack_offsets: NDArray[np.int64] | None = None
    event_start: NDArray[np.int64] | None = None
    event_stop: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays: views of them are handed out."""
        packs = (self.pack_offsets, self.event_start, self.event_stop)
        for array in (self.order, self.batch_offsets, self.padded_lengths, self.rows, self.batch_slots, *packs):
            if array is not None:
                array.flags.writeable = False

    def __len__(self) -> int:
        """Number of batches."""
        return self.rows.size

    def __getitem__(self, i: int) -> NDArray[np.int64]:
        """Indices of batch i; negative i counts from the end."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"batch {i} does not exist: the epoch has {len(self)} batches.")
        i %= len(self)
        return self.order[self.batch_offsets[i] : self.batch_offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        """Index arrays, batch after batch."""
        bounds = self.batch_offsets.tolist()
        for low, high in pairwise(bounds):
            yield self.order[low:high]

    @property
    def batches(self) -> int:
        """Number of batches."""
        return len(self)

    @property
    def slots(self) -> int:
        """Cells of all batches."""
        return int(self.batch_slots.sum())

    @property
    def ghost_rows(self) -> int:
        """Empty rows that the collate appends."""
        return 0 if self.pack_offsets is not None else int(self.rows.sum()) - self.order.size

    @property
    def packs(self) -> int | None:
        """Packs of all batches; None where sequences are not packed."""
        return None if self.pack_offsets is None else self.pack_offsets.size - 1

    @property
    def padding_ratio(self) -> float:
        """1 - kept_events / slots, 0 without slots."""
        return 1 - self.kept_events / self.slots if self.slots else 0.0

    @property
    def shapes(self) -> int:
        """Distinct (rows, width) shapes; without padding: distinct (rows, events)."""
        spec = self.policy.spec
        unpadded = spec.batching is Batching.EVENT_BUDGET or spec.layout is Layout.PACKED_SEQUENCE
        second = self.batch_slots if unpadded else self.padded_lengths
        return len(set(zip(self.rows.tolist(), second.tolist(), strict=True)))

    @property
    def largest_batch_slots(self) -> int:
        """Slots of the largest batch, 0 without batches."""
        return int(self.batch_slots.max()) if len(self) else 0

    @property
    def all_ranks(self) -> AllRanks:
        """The figures of all ranks together; of a single one its own."""
        return self.dealt or AllRanks.of_one(self)

    def audit(self, lengths: ArrayLike | None = None) -> Audit:
        """Count anew what is in this plan; ``audit_ranks`` does it for all ranks together.

        Args:
            lengths: (N,) that it was made of; None: those that it keeps.
        """
        return audit_ranks([self], lengths)
