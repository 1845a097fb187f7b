"""BucketBatchSampler: an epoch plan as the ``batch_sampler`` of a PyTorch DataLoader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike, NDArray

from labkit.batching.fields import whole_number
from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import what_if
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import checked_lengths


class BucketBatchSampler:
    """Batches of indices, epoch after epoch: ``DataLoader(dataset, batch_sampler=sampler, collate_fn=...)``.

    Each batch is a list of ints, as DataLoader wants it; ``len`` is exact. Call ``set_epoch`` before every epoch: the
    plan depends on (seed, epoch) alone, so that a second pass without it repeats the first and warns.

    Args:
        lengths: (N,) lengths of the data set's sequences, in the order of its indices.
        policy: any strategy, not only buckets.
        seed: of the shuffle.

    Warns:
        UserWarning: ``drop_last`` leaves a bucket without a single batch.

    Raises:
        LengthsError, PolicyError: as ``plan_epoch``; the first plan is made here, so that errors come before training.

    Cost: one plan an epoch, made on first use and kept until the next ``set_epoch``.
    """

    def __init__(self, lengths: ArrayLike, policy: BatchPolicy, *, seed: int = 0) -> None:
        """Check everything and plan epoch 0."""
        self._lengths: NDArray[Any] = checked_lengths(lengths)
        self.policy = policy
        self.seed = whole_number("seed", seed, least=0)
        self.epoch = 0
        self._consumed = 0
        self._passes = 0
        self._plan: EpochPlan | None = None
        _ = self.plan
        if policy.drop_last:
            self._warn_of_empty_buckets()

    def _warn_of_empty_buckets(self) -> None:
        """A bucket smaller than one batch would be left out of every epoch, not of this one alone."""
        for group in what_if(LengthHistogram.from_lengths(self._lengths), self.policy).groups:
            if group.sequences and not group.batches:
                warnings.warn(
                    f"drop_last: the {group.sequences} sequences of the bucket up to length {group.edge} fill no batch "
                    f"of {group.rows} rows, so they are never trained on. "
                    "Use fewer rows, wider buckets or drop_last=False.",
                    stacklevel=3,
                )

    @property
    def plan(self) -> EpochPlan:
        """The plan of the current epoch."""
        if self._plan is None:
            self._plan = plan_epoch(self._lengths, self.policy, seed=self.seed, epoch=self.epoch)
        return self._plan

    def __len__(self) -> int:
        """Batches that the next pass gives: those of the epoch, less those consumed before a resume."""
        return len(self.plan) - self._consumed

    def __iter__(self) -> Iterator[list[int]]:
        """Batches of the current epoch, from where ``load_state_dict`` left off.

        A generator: a pass begins with its first batch, not with ``iter``, which DataLoader calls twice when it has
        workers.
        """
        if self._passes and self.policy.shuffle:
            warnings.warn(
                f"second pass over epoch {self.epoch}: the batches are the same as before. "
                "Call set_epoch(epoch) before every epoch.",
                stacklevel=2,
            )
        self._passes += 1
        plan, start = self.plan, self._consumed
        self._consumed = 0
        for i in range(start, len(plan)):
            yield plan[i].tolist()

    def set_epoch(self, epoch: int) -> None:
        """Move to another epoch: a new shuffle from its first batch; the current one again keeps its place."""
        epoch = whole_number("epoch", epoch, least=0)
        self._passes = 0
        if epoch != self.epoch:
            self.epoch, self._plan, self._consumed = epoch, None, 0

    def state_dict(self, *, batches_consumed: int) -> dict[str, int]:
        """What ``load_state_dict`` needs to go on in the middle of an epoch.

        Args:
            batches_consumed: batches of this epoch that the training loop has finished. The sampler cannot know:
                workers fetch ahead of the loop.
        """
        consumed = whole_number("batches_consumed", batches_consumed, least=0)
        if consumed > len(self.plan):
            raise PolicyError(
                f"batches_consumed {consumed} is above the {len(self.plan)} batches of epoch {self.epoch}."
            )
        return {
            "seed": self.seed,
            "epoch": self.epoch,
            "batches_consumed": consumed,
            "sequences": int(self._lengths.size),
        }

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where ``state_dict`` was taken, with the same lengths and policy.

        Raises:
            PolicyError: a state of another data set, or one with missing fields.
        """
        missing = [k for k in ("seed", "epoch", "batches_consumed", "sequences") if k not in state]
        if missing:
            raise PolicyError(f"sampler state lacks {', '.join(missing)}: pass what state_dict returned.")
        if state["sequences"] != self._lengths.size:
            raise PolicyError(
                f"sampler state is of {state['sequences']} sequences, this data set has {self._lengths.size}."
            )
        self.seed = whole_number("seed", state["seed"], least=0)
        self.epoch = whole_number("epoch", state["epoch"], least=0)
        self._plan, self._passes = None, 0
        self._consumed = whole_number("batches_consumed", state["batches_consumed"], least=0, most=len(self.plan))
