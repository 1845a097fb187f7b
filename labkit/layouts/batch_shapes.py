"""BatchShapes: the rows, the width and the cut that a policy promises for a batch, found from its lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.events import check_fits
from labkit.batching.groups import Groups, resolve_groups
from labkit.batching.policy import BatchPolicy, Overflow, PadTo
from labkit.batching.strategies import Batching
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram


class BatchShape(NamedTuple):
    """Shape of one batch.

    Attributes:
        kept: (B,) int64, events kept of each row, the most recent ones.
        rows: R >= B; the R - B ghost rows come last.
        width: L, padded width; of a jagged strategy its longest row.
    """

    kept: NDArray[np.int64]
    rows: int
    width: int


@dataclass(frozen=True, eq=False, slots=True)
class BatchShapes:
    """What a policy says about the shape of its batches.

    Attributes:
        policy: the policy.
        groups: its groups; None for strategies filled by real events.
        static_rows: rows of every batch of a group, (K,) int64; None where batches have the rows that they have.
    """

    policy: BatchPolicy
    groups: Groups | None
    static_rows: NDArray[np.int64] | None

    @classmethod
    def of_policy(cls, policy: BatchPolicy, histogram: LengthHistogram | None) -> BatchShapes:
        """Resolve a policy, on the lengths of the data set where shapes depend on them.

        Raises:
            PolicyError: no histogram though the shapes depend on it, or a policy that does not fit it.
        """
        if policy.spec.batching is Batching.EVENT_BUDGET:
            if histogram is not None:
                check_fits(policy, histogram.max)
            return cls(policy, None, None)
        groups = resolve_groups(policy, histogram)
        return cls(policy, groups, _static_rows(policy, groups, histogram) if groups.static else None)

    def of_batch(self, lengths: NDArray[np.int64]) -> BatchShape:
        """The shape of a batch with the given (B,) lengths, B >= 1.

        Raises:
            PolicyError: the policy makes no such batch: too long, of several buckets, too many rows or events.

        Cost: O(B log K).
        """
        if self.groups is None:
            return self._by_events(lengths)
        self._refuse_longer(self.groups, lengths)
        group = self._group(self.groups, lengths)
        most = int(self.groups.rows[group] if self.static_rows is None else self.static_rows[group])
        if lengths.size > most:
            raise PolicyError(
                f"batch of {lengths.size} rows, but {self.policy.strategy} makes at most {most} in "
                f"{_bucket(self.groups, group)}: use BucketBatchSampler with the same policy and lengths."
            )
        limit = self.groups.limits[group : group + 1]
        width = int(self.groups.widths[group])
        if self.groups.pad_to is PadTo.BATCH_MAX:
            order, offsets = np.arange(lengths.size), np.array([0, lengths.size])
            width = int(arrange.batch_widths(lengths, order, offsets, limit, self.groups.length_multiple)[0])
        rows = lengths.size if self.static_rows is None else most
        return BatchShape(np.minimum(lengths, limit), rows, width)

    def _by_events(self, lengths: NDArray[np.int64]) -> BatchShape:
        policy = self.policy
        kept = lengths if policy.max_length is None else np.minimum(lengths, policy.max_length)
        events = int(kept.sum())
        for what, number, most in (("rows", lengths.size, policy.max_rows), ("events", events, policy.token_budget)):
            if number > most:
                name = "max_rows" if what == "rows" else "token_budget"
                raise PolicyError(
                    f"batch of {number} {what}, but {policy.strategy} makes at most {name} {most}: "
                    "use BucketBatchSampler with the same policy."
                )
        return BatchShape(kept, lengths.size, int(kept.max()))

    def _refuse_longer(self, groups: Groups, lengths: NDArray[np.int64]) -> None:
        """Refuse what no batch of the policy holds: lengths above the last edge, unless it truncates them."""
        policy, last = self.policy, int(groups.edges[-1])
        capped = lengths if groups.cap is None else np.minimum(lengths, groups.cap)
        if int(capped.max()) <= last or ("overflow" in policy.spec.fields and policy.overflow is Overflow.TRUNCATE):
            return
        i = int(np.argmax(capped > last))
        if groups.drops_longer:
            why = f"is above the last bucket edge {last}, which overflow 'drop' leaves out: use BucketBatchSampler"
        elif policy.spec.batching is Batching.BUCKETS:
            why = f"is above the last bucket edge {last}: raise it, set max_length, or choose another overflow"
        else:
            why = f"is above {last}, the longest of the histogram given to collate: give that of this data set"
        raise PolicyError(f"length {lengths[i]} (sample {i} of the batch) {why}.")

    def _group(self, groups: Groups, lengths: NDArray[np.int64]) -> int:
        own = groups.of_lengths(lengths)
        other = np.flatnonzero(own != own[0])
        if other.size:
            i = int(other[0])
            raise PolicyError(
                f"this batch was not made by this policy: lengths {lengths[0]} and {lengths[i]} belong to "
                f"{_bucket(groups, int(own[0]))} and {_bucket(groups, int(own[i]))}. "
                "Use BucketBatchSampler with the same policy."
            )
        return int(own[0])


def _static_rows(policy: BatchPolicy, groups: Groups, histogram: LengthHistogram | None) -> NDArray[np.int64]:
    if groups.drop_last:  # all batches are full
        return groups.rows
    if histogram is None:
        raise PolicyError(
            f"static shapes of {policy.strategy} depend on how many sequences each bucket has: pass histogram= "
            "(a LengthHistogram, or the lengths)."
        )
    sequences = np.diff(histogram.count_sums[groups.bounds(histogram)])
    return np.array([groups.split(k, int(n)).rows for k, n in enumerate(sequences)], dtype=np.int64)


def _bucket(groups: Groups, group: int) -> str:
    return f"the bucket up to {groups.edges[group]}" if groups.edges.size > 1 else "a batch"
