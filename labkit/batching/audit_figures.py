"""The figures of an audit: sums over sequences and batches, by bucket and in all."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from labkit.batching.audit import Audit, BucketAudit
from labkit.batching.audit_advice import advice, warnings_of
from labkit.batching.audit_counts import Batches, Rules, Seen, seen
from labkit.batching.audit_faults import faults_of
from labkit.batching.audit_structure import readable
from labkit.batching.dealing import straggler
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Batching, Layout
from labkit.lengths.validate import CHUNK

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan


@dataclass(frozen=True, eq=False, slots=True)
class Sums:
    """(K + 1,) int64 sums over the sequences of each bucket, the dropped ones last; (1,) without buckets.

    Attributes:
        sequences: sequences.
        events: their events.
        present: sequences in a batch.
        once: sequences of which nothing is in two batches.
        cut: sequences in a batch that lose a part.
        again: places of sequences that are in a batch already.
        kept: events in batches, each counted once.
        kept_again: events that are in a batch already.
        cut_events: events that sequences in a batch lose.
    """

    sequences: NDArray[np.int64]
    events: NDArray[np.int64]
    present: NDArray[np.int64]
    once: NDArray[np.int64]
    cut: NDArray[np.int64]
    again: NDArray[np.int64]
    kept: NDArray[np.int64]
    kept_again: NDArray[np.int64]
    cut_events: NDArray[np.int64]

    @classmethod
    def of(cls, rules: Rules, found: Seen) -> Self:
        """Sum up. Cost: O(N), chunked."""
        many = 1 if rules.groups is None else rules.groups.edges.size + 1
        sums = np.zeros((9, many), dtype=np.int64)
        for start in range(0, rules.lengths.size, CHUNK):
            part = slice(start, start + CHUNK)
            lengths = rules.lengths[part].astype(np.int64)
            places, again, kept, kept_again = found.part(rules, part)
            here = places > 0
            bucket = np.zeros(lengths.size, dtype=np.int64) if rules.bucket is None else rules.bucket[part]
            cut = np.where(here, lengths - kept, 0)
            once = here & (again == 0)
            columns = (np.ones_like(lengths), lengths, here, once, cut > 0, again, kept, kept_again, cut)
            for row, values in zip(sums, columns, strict=True):
                # float64 sums of a chunk are exact: 2**20 lengths below 2**31
                row += np.bincount(bucket, weights=values, minlength=many).astype(np.int64)
        return cls(*sums)


def audited(plans: list[EpochPlan], lengths: NDArray[np.integer]) -> Audit:
    """The audit of plans that belong together; see ``audit_ranks``."""
    mended = [readable(plan) for plan in plans]
    plans, broken = [plan for plan, _ in mended], tuple(line for _, lines in mended for line in lines)
    plan, policy = plans[0], plans[0].policy
    rules = Rules.of(policy, lengths)
    found = seen(plans, rules)
    batches, sums = Batches.of(plans, rules), Sums.of(rules, found)
    whole = len(plans) == plan.world_size
    figures = _sequence_figures(sums, whole) | _batch_figures(plans, batches, rules)
    why = {
        "sequences_dropped": "other ranks have the rest: audit_ranks counts all of them",
        "overshoot": f"{policy.strategy} has no token budget",
        "lag1": "it takes three batches that are not all of one length",
        "rows_min": "there is no batch",
        "rows_max": "there is no batch",
    }
    figures["straggler"], figures["epoch_straggler"] = _stragglers(plans, whole)
    result = Audit(
        strategy=policy.strategy,
        world_size=plan.world_size,
        ranks=tuple(p.rank for p in plans),
        **figures,
        buckets=_buckets(rules, sums, batches, whole),
        reason={name: text for name, text in why.items() if figures[name] is None},
        advice="",
        warnings=(),
        faults=(),
    )
    return replace(
        result,
        advice=advice(result, policy.spec),
        warnings=warnings_of(result, policy, bool(broken)),
        faults=faults_of(result, plans, rules, found, batches, broken),
    )


def _sequence_figures(sums: Sums, whole: bool) -> dict[str, Any]:
    total = {field.name: int(getattr(sums, field.name).sum()) for field in fields(sums)}
    sequences, present = total["sequences"], total["present"]
    return {
        "sequences": sequences,
        "events": total["events"],
        "kept_events": total["kept"] + total["kept_again"],
        "sequences_seen": present,
        "sequences_once": total["once"],
        "coverage": present / sequences,
        "sequences_truncated": total["cut"],
        "events_lost": total["events"] - total["kept"] if whole else total["cut_events"],
        "sequences_dropped": sequences - present if whole else None,
        "sequences_repeated": total["again"],
        "events_repeated": total["kept_again"],
    }


def _batch_figures(plans: list[EpochPlan], batches: Batches, rules: Rules) -> dict[str, Any]:
    spec, slots = rules.policy.spec, int(batches.slots.sum())
    unpadded = spec.layout not in (Layout.PADDED, Layout.PACKED_ROWS)
    second = batches.slots if unpadded else batches.widths
    over = overshoot(batches, rules.policy)
    some = bool(batches.rows.size)
    return {
        "batches": batches.rows.size,
        "shapes": len(set(zip(batches.rows.tolist(), second.tolist(), strict=True))),
        "rows_min": int(batches.rows.min()) if some else None,
        "rows_max": int(batches.rows.max()) if some else None,
        "slots": slots,
        "padding_ratio": 1 - int(batches.events.sum()) / slots if slots else 0.0,
        "ghost_rows": 0 if spec.batching is Batching.PACKS else int((batches.rows - batches.sizes).sum()),
        "overshoot": None if over is None else int(over.max(initial=0)),
        "batches_over_budget": 0 if over is None else int(np.count_nonzero(over)),
        "lag1": _lag1(batches.longest[: len(plans[0])]),
    }


def overshoot(batches: Batches, policy: BatchPolicy) -> NDArray[np.int64] | None:
    """(B,) slots, or events where nothing is padded, by which a batch is above the token budget; None without one."""
    if "token_budget" not in policy.spec.fields:
        return None
    used = batches.events if policy.spec.batching is Batching.EVENT_BUDGET else batches.rows * batches.widths
    return np.maximum(used - policy.token_budget, 0)


def _lag1(longest: NDArray[np.int64]) -> float | None:
    if longest.size < 3 or not (np.ptp(longest[1:]) and np.ptp(longest[:-1])):
        return None
    return float(np.corrcoef(longest[:-1], longest[1:])[0, 1])


def _stragglers(plans: list[EpochPlan], whole: bool) -> tuple[float, float]:
    """By slots, from the plans of all ranks; of a part of them what the plan knows."""
    if not whole:
        return plans[0].all_ranks.straggler, plans[0].all_ranks.epoch_straggler
    spread = np.zeros((max(len(plan) for plan in plans), len(plans)))
    for rank, plan in enumerate(plans):
        spread[: len(plan), rank] = plan.batch_slots
    return straggler(spread), straggler(spread.sum(axis=0, keepdims=True))


def _buckets(rules: Rules, sums: Sums, batches: Batches, whole: bool) -> tuple[BucketAudit, ...]:
    groups = rules.groups
    if groups is None:
        return ()
    many = groups.edges.size
    by_bucket = [
        np.bincount(batches.bucket, weights=values, minlength=many + 1).astype(np.int64)
        for values in (np.ones_like(batches.rows), batches.slots, batches.events, batches.rows - batches.sizes)
    ]
    found = []
    for k in range(many + 1):
        if k == many and not sums.sequences[k]:
            break  # nothing above the last edge
        count, slots, kept, ghosts = (int(column[k]) for column in by_bucket)
        sequences, present = int(sums.sequences[k]), int(sums.present[k])
        found.append(
            BucketAudit(
                edge=int(groups.edges[k]) if k < many else None,
                width=int(groups.widths[k]) if k < many else None,
                sequences=sequences,
                batches=count,
                slots=slots,
                kept_events=kept,
                padding_ratio=1 - kept / slots if slots else 0.0,
                ghost_rows=ghosts,
                sequences_truncated=int(sums.cut[k]),
                events_lost=int(sums.events[k] - sums.kept[k] if whole else sums.cut_events[k]),
                sequences_dropped=sequences - present if whole else None,
                sequences_repeated=int(sums.again[k]),
                events_repeated=int(sums.kept_again[k]),
            )
        )
    return tuple(found)
