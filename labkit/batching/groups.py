"""Groups: what a policy means on given lengths. The one place where edges, widths and rows are resolved.

Every padded strategy is a list of groups, short to long: the bucket strategies have one a bucket, the others have a
single group. ``what_if`` and ``plan_epoch`` both start from here; only what they count afterwards differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from labkit.batching.policy import BatchPolicy, Overflow, Oversize, PadTo
from labkit.batching.strategies import Batching, Layout, Strategy
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of sequences that are batched together, K of them.

    Attributes:
        edges: (K,) int64, longest (capped) length of each group; a sequence belongs to the first edge >= its length.
        limits: (K,) int64, most events kept of a sequence.
        widths: (K,) int64, padded width, >= limits.
        rows: (K,) int64, most rows a batch.
        budget: token budget of a batch; None in strategies without one.
        cap: ``max_length`` with its default resolved, or None.
        drops_longer: sequences above the last edge are dropped (otherwise the last group takes them, truncated).
        pad_to: what a batch is padded to.
        static: every batch of a group has the same rows.
        row_multiple: what static rows are rounded up to.
        drop_last: the last, partial batch of each group is left out.
        length_multiple: what widths are rounded up to.
    """

    edges: NDArray[np.int64]
    limits: NDArray[np.int64]
    widths: NDArray[np.int64]
    rows: NDArray[np.int64]
    budget: int | None
    cap: int | None
    drops_longer: bool
    pad_to: PadTo
    static: bool
    row_multiple: int
    drop_last: bool
    length_multiple: int

    @cached_property
    def over_budget(self) -> NDArray[np.bool_]:
        """(K,) groups whose width alone, one row, is above the token budget."""
        if self.budget is None:
            return np.zeros(self.edges.size, dtype=bool)
        return self.rows * self.widths > self.budget

    def of_lengths(self, values: NDArray[np.integer]) -> NDArray[np.int64]:
        """(n,) int64 group of each length; K for those that are dropped."""
        group = np.searchsorted(self.edges, values, side="left")
        if not self.drops_longer:
            np.minimum(group, self.edges.size - 1, out=group)
        return group

    def bounds(self, histogram: LengthHistogram) -> NDArray[np.int64]:
        """(K + 1,) positions in ``histogram.values``: group k holds values[bounds[k]:bounds[k + 1]]."""
        inner = np.searchsorted(histogram.values, self.edges, side="right")
        if not self.drops_longer:
            inner[-1] = histogram.distinct
        return np.concatenate(([0], inner))

    def split(self, group: int, sequences: int) -> BatchSplit:
        """How ``sequences`` rows of a group are cut into batches."""
        most = int(self.rows[group])
        if self.drop_last:
            full = sequences // most
            return BatchSplit(batches=full, rows=most, last=most if full else 0, dropped=sequences - full * most)
        if sequences == 0:
            return BatchSplit(batches=0, rows=most, last=0, dropped=0)
        batches = -(-sequences // most)
        if not self.static:
            return BatchSplit(batches=batches, rows=most, last=sequences - (batches - 1) * most, dropped=0)
        rows = -(-sequences // batches)
        rounded = -(-rows // self.row_multiple) * self.row_multiple
        rows = rounded if rounded <= most else rows
        return BatchSplit(batches=batches, rows=rows, last=sequences - (batches - 1) * rows, dropped=0)


@dataclass(frozen=True, slots=True)
class BatchSplit:
    """Batches of one group: all but the last hold ``rows`` sequences, the last holds ``last``.

    With static shapes the last batch has ``rows`` rows too, and ``rows - last`` of them are ghosts.
    """

    batches: int
    rows: int
    last: int
    dropped: int


def resolve_groups(
    policy: BatchPolicy, histogram: LengthHistogram | None, lengths: NDArray[np.integer] | None = None
) -> Groups:
    """Resolve a padded policy on given lengths.

    Args:
        policy: a policy of a padded strategy.
        histogram: of the lengths; None where they are not at hand and the policy alone is to say the shapes.
        lengths: the (N,) lengths themselves where they are at hand, so that an error can name an index.

    Raises:
        PolicyError: a length above the last edge with ``overflow='error'``; a width above the token budget with
            ``oversize='error'``; a strategy without groups (jagged, packed); no histogram where a width needs one.

    Cost: O(K log m).
    """
    if policy.spec.batching in (Batching.EVENT_BUDGET, Batching.PACKS):
        filled = "real events" if policy.spec.batching is Batching.EVENT_BUDGET else "packs"
        raise PolicyError(f"strategy {policy.strategy} has no padded groups: its batches are filled by {filled}.")
    if policy.spec.batching is Batching.BUCKETS:
        return _bucket_groups(policy, histogram, lengths)
    cap = resolved_cap(policy, histogram)
    edge = cap if policy.strategy is Strategy.PAD_RECENT and cap is not None else _longest(policy, cap, histogram)
    to_longest = policy.strategy is Strategy.PAD_BATCH or policy.spec.layout is Layout.PACKED_SEQUENCE
    pad_to = PadTo.BATCH_MAX if to_longest else PadTo.EDGE
    return _groups(policy, np.array([edge]), np.array([edge]), cap, np.array([policy.rows]), pad_to=pad_to)


def _longest(policy: BatchPolicy, cap: int | None, histogram: LengthHistogram | None) -> int:
    """The longest capped length, at least 1; of unknown lengths the longest that there can be."""
    if histogram is None and policy.strategy is Strategy.PAD_MAX:
        raise PolicyError("pad_max pads to the longest length of the data set, which no policy holds: pass histogram=.")
    longest = MAX_LENGTH if histogram is None else histogram.max
    return max(1, longest if cap is None else min(cap, longest))


def resolved_cap(policy: BatchPolicy, histogram: LengthHistogram | None) -> int | None:
    """``max_length`` as the strategy means it: none for ``pad_max``, ceil(P99) by default for ``pad_recent``."""
    if "max_length" not in policy.spec.fields:
        return None
    if policy.max_length is None and policy.strategy is Strategy.PAD_RECENT:
        if histogram is None:
            raise PolicyError("pad_recent without max_length pads to ceil(P99) of the lengths: pass histogram=")
        return max(1, ceil(histogram.quantile(0.99)))
    return policy.max_length


def _bucket_groups(
    policy: BatchPolicy, histogram: LengthHistogram | None, lengths: NDArray[np.integer] | None
) -> Groups:
    edges, limits = _capped_edges(policy)
    if policy.overflow is Overflow.ERROR and histogram is not None:
        _refuse_overflow(int(edges[-1]), policy.max_length, histogram, lengths)
    if policy.strategy is Strategy.BUCKET_ROWS:
        rows = np.full(edges.size, policy.rows)
    else:
        rows = _budget_rows(policy, round_up(limits, policy.length_multiple))
    return _groups(policy, edges, limits, policy.max_length, rows, pad_to=policy.pad_to)


def _refuse_overflow(
    edge: int, cap: int | None, histogram: LengthHistogram, lengths: NDArray[np.integer] | None
) -> None:
    longest = histogram.max if cap is None else min(cap, histogram.max)
    if longest <= edge:
        return
    above = histogram.sequences - int(histogram.count_sums[np.searchsorted(histogram.values, edge, "right")])
    where = "" if lengths is None else f", the first at index {int(np.argmax(lengths > edge))}"
    raise PolicyError(
        f"longest length {longest} > last bucket edge {edge} "
        f"({above} of {histogram.sequences} sequences above it{where}): raise the last edge, "
        "set max_length, or choose overflow 'truncate' or 'drop'."
    )


def _capped_edges(policy: BatchPolicy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges and limits under the cap: the edges above it collapse to one edge = cap."""
    edges = np.asarray(policy.bucket_edges, dtype=np.int64)
    limits = edges if policy.bucket_widths is None else np.asarray(policy.bucket_widths, dtype=np.int64)
    cap = policy.max_length
    if cap is None or edges[-1] <= cap:
        return edges, limits
    below = int(np.searchsorted(edges, cap, side="left"))  # edges < cap stay as they are
    limit = min(int(limits[below]), cap)  # lengths are capped first: what is cut to the cap belongs to its bucket
    return np.append(edges[:below], cap), np.append(limits[:below], limit)


def _budget_rows(policy: BatchPolicy, widths: NDArray[np.int64]) -> NDArray[np.int64]:
    rows: NDArray[np.int64] = policy.token_budget // widths
    rounded = rows - rows % policy.row_multiple
    rows = np.where(rounded > 0, rounded, rows)
    if not rows.all():
        if policy.oversize is Oversize.ERROR:
            width, wide = int(widths.max()), int((rows == 0).sum())
            others = f" ({wide} of {widths.size} buckets are too wide)" if wide > 1 else ""
            raise PolicyError(
                f"bucket width {width} is above token_budget {policy.token_budget}, so not one row fits{others}: "
                f"raise token_budget to {width} or more, set max_length, or choose oversize 'single_row'."
            )
        rows = np.maximum(rows, 1)
    return rows


def _groups(
    policy: BatchPolicy,
    edges: NDArray[np.int64],
    limits: NDArray[np.int64],
    cap: int | None,
    rows: NDArray[np.int64],
    *,
    pad_to: PadTo,
) -> Groups:
    used = policy.spec.fields
    multiple = policy.length_multiple if "length_multiple" in used else 1
    widths = round_up(limits, multiple)
    # a width rounded up leaves room for events that the bare width would cut, but never above the cap
    kept = np.where(limits < edges, np.minimum(widths, edges), edges)
    return Groups(
        edges=edges,
        limits=kept if cap is None else np.minimum(kept, cap),
        widths=widths,
        rows=rows,
        budget=policy.token_budget if "token_budget" in used else None,
        cap=cap,
        # lengths are capped first: with a cap at the last edge nothing is longer
        drops_longer="overflow" in used and policy.overflow is Overflow.DROP and (cap is None or cap > int(edges[-1])),
        pad_to=pad_to,
        static="static_shapes" in used and policy.has_static_shapes,
        row_multiple=policy.row_multiple if "row_multiple" in used else 1,
        drop_last=policy.drop_last,
        length_multiple=multiple,
    )


def round_up(values: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Values rounded up to a multiple, at least one multiple: a padded width is at least 1."""
    return np.maximum(-(-values // multiple), 1) * multiple
