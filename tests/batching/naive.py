"""The rules of batching once more, as obvious loops over single sequences: what the fast paths are held against."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Batching


@dataclass(frozen=True)
class Place:
    """Where one sequence goes: its bucket, how many of its events are kept, the padded width of that bucket."""

    bucket: int
    kept: int
    width: int


@dataclass(frozen=True)
class Epoch:
    """The figures of an epoch padded to the edges; those that drop_last leaves to chance are None."""

    batches: int
    slots: int
    ghost_rows: int
    sequences_dropped: int
    kept_events: int | None
    sequences_truncated: int | None


def up(value: int, multiple: int) -> int:
    return max(1, ceil(value / multiple)) * multiple


def cap_of(policy: BatchPolicy, lengths: list[int]) -> int | None:
    if policy.strategy == "pad_max":
        return None
    if policy.strategy == "pad_recent" and policy.max_length is None:
        return max(1, ceil(np.quantile(lengths, 0.99)))
    return policy.max_length


def buckets_of(policy: BatchPolicy, lengths: list[int]) -> list[tuple[int, int]]:
    """(edge, events kept at most) of each bucket, under the cap."""
    cap = cap_of(policy, lengths)
    if policy.spec.batching is not Batching.BUCKETS:
        longest = max(lengths) if cap is None else min(cap, max(lengths))
        edge = max(1, cap if policy.strategy == "pad_recent" and cap else longest)
        return [(edge, edge)]
    edges, widths = list(policy.bucket_edges or ()), list(policy.bucket_widths or policy.bucket_edges or ())
    if cap is not None and edges[-1] > cap:
        below = sum(edge < cap for edge in edges)
        width = min(cap, widths[below])  # a length cut to the cap belongs to the bucket of the cap
        edges, widths = [*edges[:below], cap], [*widths[:below], width]
    return list(zip(edges, widths, strict=True))


def place(length: int, policy: BatchPolicy, lengths: list[int]) -> Place | None:
    """Cap first, then the first edge at or above the length; None: dropped by ``overflow``."""
    cap = cap_of(policy, lengths)
    own = length if cap is None else min(length, cap)
    buckets = buckets_of(policy, lengths)
    bucket = next((k for k, (edge, _) in enumerate(buckets) if own <= edge), None)
    if bucket is None:
        if policy.overflow == "drop":
            return None
        bucket = len(buckets) - 1
    edge, limit = buckets[bucket]
    width = up(limit, policy.length_multiple)
    # a width that is rounded up keeps what fits it, but never more than the edge
    most = edge if limit == edge else min(width, edge)
    return Place(bucket, min(own, most), width)


def rows_of(policy: BatchPolicy, width: int) -> int:
    if "rows" in policy.spec.fields:
        return policy.rows
    rows = policy.token_budget // width
    if rows >= policy.row_multiple:
        rows -= rows % policy.row_multiple
    return max(rows, 1)


def epoch(lengths: list[int], policy: BatchPolicy) -> Epoch:
    """Count one epoch of a padded policy, bucket after bucket."""
    places = [place(length, policy, lengths) for length in lengths]
    kept = [p for p in places if p is not None]
    batches = slots = ghosts = left_out = 0
    for k in sorted({p.bucket for p in kept}):
        inside = [p for p in kept if p.bucket == k]
        most = rows_of(policy, inside[0].width)
        here, rows_sum = len(inside), len(inside)
        full, rest = divmod(here, most)
        count = full + (rest > 0)
        if policy.drop_last:
            count, rows_sum = full, full * most
        elif policy.spec.batching is Batching.BUCKETS and policy.has_static_shapes:
            rows = ceil(here / count)
            multiple = policy.row_multiple if "row_multiple" in policy.spec.fields else 1
            rows = up(rows, multiple) if up(rows, multiple) <= most else rows
            rows_sum = rows * count
        batches, slots = batches + count, slots + rows_sum * inside[0].width
        ghosts, left_out = ghosts + max(0, rows_sum - here), left_out + max(0, here - rows_sum)
    known = left_out == 0
    truncated = sum(p is not None and p.kept < n for p, n in zip(places, lengths, strict=True))
    return Epoch(
        batches=batches,
        slots=slots,
        ghost_rows=ghosts,
        sequences_dropped=len(lengths) - len(kept) + left_out,
        kept_events=sum(p.kept for p in kept) if known else None,
        sequences_truncated=truncated if known else None,
    )
