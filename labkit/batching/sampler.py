"""BucketBatchSampler: an epoch plan as the ``batch_sampler`` of a PyTorch DataLoader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike, NDArray

from labkit.batching.audit_advice import REPEATED_ABOVE
from labkit.batching.costs import DEFAULT_ALPHA
from labkit.batching.dealing import Remainder
from labkit.batching.fields import whole_number
from labkit.batching.pieces import batch_indices
from labkit.batching.plan import EpochPlan, plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.share import Balance, Share
from labkit.batching.what_if import what_if
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import checked_lengths
from labkit.units import format_share, shown


class BucketBatchSampler:
    """Batches of indices, epoch after epoch: ``DataLoader(dataset, batch_sampler=sampler, collate_fn=...)``.

    Each batch is a list of ints, as DataLoader wants it (``packed``: ``PieceIndex``, ints that also say which events go
    to which pack; wrap the data set in ``PackedDataset``); ``len`` is exact. Call ``set_epoch`` before every epoch: the
    plan depends on (seed, epoch) alone, so that a second pass without it repeats the first and warns.

    On several processes give each its own rank, and the same of everything else:

        BucketBatchSampler(lengths, policy, rank=dist.get_rank(), world_size=dist.get_world_size())

    Nothing is read from ``torch.distributed`` behind your back: a process group that is there for another reason (an
    evaluation that every rank runs whole, a sharded model) must not divide the data.

    Args:
        lengths: (N,) lengths of the data set's sequences, in the order of its indices.
        policy: any strategy, not only buckets.
        seed: of the shuffle.
        rank: of this process, 0 .. world_size - 1.
        world_size: processes that train together.
        remainder: ``repeat``, ``drop`` or ``uneven``; see ``plan_epoch``.
        balance: ``none``, ``slots`` or ``quadratic``; see ``plan_epoch``.
        alpha: weight of the squares in ``balance='quadratic'``.

    Warns:
        UserWarning: ``drop_last`` or ``remainder='drop'`` leaves a bucket without a single batch;
            ``remainder='repeat'`` repeats more than a tenth of the sequences.

    Raises:
        LengthsError, PolicyError: as ``plan_epoch``; the first plan is made here, so that errors come before training.

    Cost: one plan an epoch, made on first use and kept until the next ``set_epoch``.
    """

    def __init__(
        self,
        lengths: ArrayLike,
        policy: BatchPolicy,
        *,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        remainder: Remainder | str = Remainder.REPEAT,
        balance: Balance | str = Balance.NONE,
        alpha: float = DEFAULT_ALPHA,
    ) -> None:
        """Check everything and plan epoch 0."""
        self._lengths: NDArray[Any] = checked_lengths(lengths)
        self.policy = policy
        self.share = Share.checked(rank, world_size, remainder, balance, alpha)
        self.seed = whole_number("seed", seed, least=0)
        self.epoch = 0
        self._consumed = 0
        self._passes = 0
        self._plan: EpochPlan | None = None
        _ = self.plan
        self._warn_of_buckets_without_batches()
        self._warn_of_repetitions()

    def _warn_of_repetitions(self) -> None:
        """``remainder='repeat'`` with few batches a bucket trains some sequences twice in every epoch."""
        found = self.plan.all_ranks
        if found.sequences_repeated > REPEATED_ABOVE * found.sequences:
            share = format_share(found.sequences_repeated / found.sequences)
            warnings.warn(
                f"remainder 'repeat': {found.sequences_repeated} places in every epoch are repetitions, {share} of the "
                f"{found.sequences} sequences, so that {found.world_size} ranks have equal steps. Use smaller batches, "
                "fewer buckets or ranks, or remainder 'uneven' or 'drop'.",
                stacklevel=3,
            )

    def _warn_of_buckets_without_batches(self) -> None:
        """A bucket smaller than one batch a rank would be left out of every epoch, not of this one alone."""
        share = self.share
        leaves_out = share.remainder is Remainder.DROP and share.world_size > 1
        if not (self.policy.drop_last or leaves_out):
            return
        found = what_if(LengthHistogram.from_lengths(self._lengths), self.policy)
        if not found.groups and not found.batches:  # packs, and rows without padding
            what = "rows" if found.packs is None else "packs"
            warnings.warn(
                f"drop_last: the {what} of all {found.sequences} sequences fill no batch of {self.policy.rows}, so "
                "nothing is ever trained on. Use fewer rows or drop_last=False.",
                stacklevel=3,
            )
        for group in found.groups:
            why, fix = None, "drop_last=False"
            if group.sequences and not group.batches:
                why = f"fill no batch of {group.rows} rows"
            elif leaves_out and 0 < group.batches < share.world_size:
                why, fix = f"fill {group.batches} batches for {share.world_size} ranks", "remainder 'repeat'"
            if why:
                cause = "remainder 'drop'" if group.batches else "drop_last"
                warnings.warn(
                    f"{cause}: the {group.sequences} sequences of the bucket up to length {group.edge} {why}, so they "
                    f"are never trained on. Use fewer rows, wider buckets or {fix}.",
                    stacklevel=3,
                )

    @property
    def plan(self) -> EpochPlan:
        """The plan of the current epoch."""
        if self._plan is None:
            self._plan = self._planned(self.seed, self.epoch)
        return self._plan

    def _planned(self, seed: int, epoch: int) -> EpochPlan:
        share = {field.name: getattr(self.share, field.name) for field in fields(self.share)}
        return plan_epoch(self._lengths, self.policy, seed=seed, epoch=epoch, **share)

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
            yield batch_indices(plan, i)

    def set_epoch(self, epoch: int) -> None:
        """Move to another epoch: a new shuffle from its first batch; the current one again keeps its place."""
        epoch = whole_number("epoch", epoch, least=0)
        self._passes = 0
        if epoch != self.epoch:
            self.epoch, self._plan, self._consumed = epoch, None, 0

    def state_dict(self, *, batches_consumed: int) -> dict[str, Any]:
        """What ``load_state_dict`` needs to go on in the middle of an epoch; any rank's state serves all of them.

        Args:
            batches_consumed: batches of this epoch that the training loop of this rank has finished. The sampler
                cannot know: workers fetch ahead of the loop.
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
            **self._dealt_as(),
        }

    def _dealt_as(self) -> dict[str, Any]:
        """What must not change between state_dict and load_state_dict, or batches would be missed or seen twice."""
        share = self.share
        found: dict[str, Any] = {"world_size": share.world_size}
        if share.world_size > 1:
            found |= {"remainder": str(share.remainder), "balance": str(share.balance)}
        if share.world_size > 1 and share.balance is Balance.QUADRATIC:
            found["alpha"] = share.alpha
        return found

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where ``state_dict`` was taken, with the same lengths and policy.

        Raises:
            PolicyError: a state of another data set or another number of ranks, one with missing fields, or no state
                at all. The sampler stays as it was.
        """
        if not isinstance(state, dict):
            raise PolicyError(
                f"sampler state must be a dict: got {shown(state)} ({type(state).__name__}). "
                "Pass what state_dict returned."
            )
        missing = [k for k in ("seed", "epoch", "batches_consumed", "sequences", "world_size") if k not in state]
        if missing:
            raise PolicyError(f"sampler state lacks {', '.join(missing)}: pass what state_dict returned.")
        if state["sequences"] != self._lengths.size:
            raise PolicyError(
                f"sampler state is of {state['sequences']} sequences, this data set has {self._lengths.size}."
            )
        for name, own in self._dealt_as().items():
            was = state.get(name)
            if was != own:
                raise PolicyError(
                    f"sampler state has {name} {was}, this sampler has {own}: batches would be "
                    f"missed or seen twice. Resume with {name} {was}, or begin the next epoch."
                )
        seed = whole_number("seed", state["seed"], least=0)
        epoch = whole_number("epoch", state["epoch"], least=0)
        plan = self._planned(seed, epoch)
        consumed = whole_number("batches_consumed", state["batches_consumed"], least=0, most=plan.all_ranks.steps)
        self.seed, self.epoch, self._plan, self._passes = seed, epoch, plan, 0
        self._consumed = min(consumed, len(plan))  # with remainder 'uneven' this rank may have fewer
