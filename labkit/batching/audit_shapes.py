"""What is wrong with the shapes of a plan: widths, rows and packs that are not those of its policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labkit.batching.audit_counts import Batches, Rules
from labkit.batching.audit_structure import capacity_in
from labkit.batching.groups import round_up
from labkit.batching.policy import PadTo
from labkit.batching.strategies import Batching

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


def wrong_shapes(plans: list[EpochPlan], rules: Rules, batches: Batches) -> Iterator[str]:
    """Every fault of shapes, with its numbers."""
    yield from _wrong_widths(batches, rules)
    yield from _wrong_rows(batches, rules)
    for plan in plans:
        yield from _wrong_packs(plan, rules)


def _in_a_bucket(batches: Batches, rules: Rules) -> NDArray[np.bool_]:
    """(B,) batches of sequences of one bucket: of the others no shape is known."""
    found: NDArray[np.bool_] = (batches.sizes > 0) & ~batches.mixed
    return found if rules.groups is None else found & (batches.bucket < rules.groups.edges.size)


def _wrong_widths(batches: Batches, rules: Rules) -> Iterator[str]:
    policy, groups = rules.policy, rules.groups
    multiple = policy.length_multiple if "length_multiple" in policy.spec.fields else 1
    if policy.spec.batching is Batching.PACKS:
        width = round_up(np.array([capacity_in(policy, int(rules.lengths.max()))]), multiple)
        wanted, why = np.broadcast_to(width, batches.widths.shape), "the capacity"
    elif groups is None:
        wanted, why = batches.longest, "its longest row"
    elif groups.pad_to is PadTo.BATCH_MAX:
        wanted, why = round_up(batches.longest, multiple), "its longest row"
    else:
        of = "its bucket" if policy.spec.batching is Batching.BUCKETS else str(policy.strategy)
        wanted, why = np.append(groups.widths, 0)[batches.bucket], f"{of}"
    wrong = (batches.widths != wanted) & _in_a_bucket(batches, rules)
    if wrong.any():
        i = int(np.argmax(wrong))
        yield (
            f"batch {i} has width {batches.widths[i]}, that of {why} is {wanted[i]} "
            f"({np.count_nonzero(wrong)} such batches)."
        )
    odd = batches.widths % multiple != 0
    if odd.any():
        i = int(np.argmax(odd))
        yield (
            f"batch {i} has width {batches.widths[i]}, no multiple of length_multiple {multiple} "
            f"({np.count_nonzero(odd)} such batches)."
        )


def _wrong_rows(batches: Batches, rules: Rules) -> Iterator[str]:
    policy, groups, known = rules.policy, rules.groups, _in_a_bucket(batches, rules)
    if (batches.rows < 1).any():
        i = int(np.argmax(batches.rows < 1))
        yield f"batch {i} has {batches.rows[i]} rows ({np.count_nonzero(batches.rows < 1)} such batches)."
    if groups is None:
        full, filled = np.full(batches.rows.size, policy.rows), batches.rows
        leaves_out = "drop_last" in policy.spec.fields and policy.drop_last
    else:
        full, filled = np.append(groups.rows, 0)[batches.bucket], batches.sizes
        leaves_out = groups.drop_last
        above = (batches.rows > full) & known
        if above.any() and "rows" not in policy.spec.fields:
            i = int(np.argmax(above))
            yield (
                f"batch {i} has {batches.rows[i]} rows, its bucket takes {full[i]} "
                f"({np.count_nonzero(above)} such batches)."
            )
        if groups.static:
            yield from _varying_rows(batches, known, groups.edges)
    partial = (filled < full) & known
    if leaves_out and partial.any():
        i = int(np.argmax(partial))
        what = "rows" if groups is None else "sequences"
        yield (
            f"batch {i} has {filled[i]} {what} of {full[i]}: drop_last leaves partial batches out "
            f"({np.count_nonzero(partial)} such batches)."
        )


def _varying_rows(batches: Batches, known: NDArray[np.bool_], edges: NDArray[np.int64]) -> Iterator[str]:
    bucket, rows = batches.bucket[known], batches.rows[known]
    low, high = np.full(edges.size, np.iinfo(np.int64).max), np.full(edges.size, np.iinfo(np.int64).min)
    np.minimum.at(low, bucket, rows)
    np.maximum.at(high, bucket, rows)
    for k in np.flatnonzero(low < high):
        yield f"the bucket up to length {edges[k]} has batches of {low[k]} to {high[k]} rows: static shapes are one."


def _wrong_packs(plan: EpochPlan, rules: Rules) -> Iterator[str]:
    """Pieces outside their sequences, and packs that are too full, empty, or not those of the batches."""
    offsets, start, stop = plan.pack_offsets, plan.event_start, plan.event_stop
    if offsets is None or start is None or stop is None:
        return
    lengths = rules.lengths[np.clip(plan.order, 0, rules.lengths.size - 1)]
    outside = (start < 0) | (start > stop) | (stop > lengths)
    if outside.any():
        i = int(np.argmax(outside))
        yield f"piece {start[i]} .. {stop[i]} of sequence {plan.order[i]} is outside its {lengths[i]} events."
    most, capacity = rules.policy.max_sequences_per_pack, capacity_in(rules.policy, int(rules.lengths.max()))
    sizes, sums = np.diff(offsets), np.concatenate(([0], np.cumsum(stop - start)))
    filled = sums[offsets[1:]] - sums[offsets[:-1]]
    for wrong, values, text in (
        (filled > capacity, filled, f"events, above the capacity {capacity}"),
        (sizes > (sizes if most is None else most), sizes, f"sequences, above max_sequences_per_pack {most}"),
        (sizes == 0, sizes, "sequences"),
    ):
        if wrong.any():
            p = int(np.argmax(wrong))
            yield f"pack {p} has {values[p]} {text} ({np.count_nonzero(wrong)} such packs)."
    packs, rows = offsets.size - 1, int(plan.rows.sum())
    if packs != rows:
        yield f"{packs} packs for {rows} rows."
    elif (plan.rows > 0).all():
        first = offsets[np.concatenate(([0], np.cumsum(plan.rows)))]
        if (first != plan.batch_offsets).any():
            i = int(np.argmax(first != plan.batch_offsets))
            yield f"the packs before batch {i} end at {first[i]}, the batches before it at {plan.batch_offsets[i]}."
