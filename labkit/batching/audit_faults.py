"""What is wrong with a plan: rules of its policy that it breaks, figures that are not what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labkit.batching.audit_counts import Batches, Rules, Seen
from labkit.batching.audit_shapes import wrong_shapes
from labkit.batching.audit_structure import wrong_ranks
from labkit.batching.policy import BatchPolicy, Oversize, PadTo
from labkit.batching.strategies import Batching, Layout

if TYPE_CHECKING:
    from labkit.batching.audit import Audit
    from labkit.batching.epoch_plan import EpochPlan

#: Figures that the audit and the plan both have; those of several ranks are in ``plan.all_ranks``.
_CLAIMED = (
    "batches",
    "slots",
    "kept_events",
    "events_repeated",
    "events_lost",
    "sequences_repeated",
    "sequences_truncated",
    "sequences_dropped",
    "batches_over_budget",
)
#: Those that one rank of several can be held to by its own arrays.
_OF_A_RANK = ("batches", "slots", "kept_events", "batches_over_budget")


def faults_of(
    audit: Audit, plans: list[EpochPlan], rules: Rules, found: Seen, batches: Batches, broken: tuple[str, ...]
) -> tuple[str, ...]:
    """Every fault in one line with its numbers; empty for a sound plan.

    Args:
        audit: what was counted.
        plans: where.
        rules: what the policy says.
        found: how often each sequence is in the plans.
        batches: what is in each batch.
        broken: arrays that do not fit one another. What the plan says of itself cannot be held against them, so that
            only the sequences in its batches are looked at beside.
    """
    if broken:
        return (*broken, *_wrong_sequences(audit, rules, found), *wrong_ranks(plans))
    return tuple(
        line
        for lines in (
            _wrong_sequences(audit, rules, found),
            _wrong_batches(batches, rules),
            _over_budget(batches, rules.policy),
            wrong_shapes(plans, rules, batches),
            wrong_ranks(plans),
            _unequal_steps(plans),
            _wrong_figures(audit, plans),
        )
        for line in lines
    )


def _wrong_sequences(audit: Audit, rules: Rules, found: Seen) -> Iterator[str]:
    if found.strays:
        yield f"{found.strays} indices do not exist: there are {audit.sequences} sequences."
    if audit.sequences_repeated and audit.world_size == 1:
        first = int(np.argmax(found.places > 1 if found.again is None else found.again > 0))
        yield f"{audit.sequences_repeated} sequences are in more than one batch, the first is {first}."
    if found.overlaps is not None and found.overlaps.size:
        yield (
            f"{found.overlaps.size} pieces begin inside another piece of their sequence, the first of sequence "
            f"{found.overlaps[0]}."
        )
    if rules.groups is not None and rules.bucket is not None:
        wrong = np.flatnonzero((rules.bucket == rules.groups.edges.size) & (found.places > 0))
        if wrong.size:
            yield f"{wrong.size} sequences are in a batch that overflow 'drop' leaves out, the first is {wrong[0]}."


def _wrong_batches(batches: Batches, rules: Rules) -> Iterator[str]:
    spec = rules.policy.spec
    used = batches.rows * batches.widths
    checks = {"is empty": batches.sizes == 0, "has sequences of several buckets": batches.mixed}
    if spec.batching is not Batching.PACKS:
        checks["has more sequences than rows"] = batches.sizes > batches.rows
        if rules.groups is None or not rules.groups.static:
            checks["has rows without a sequence"] = batches.sizes < batches.rows
    checks["has a row longer than its width"] = batches.longest > batches.widths
    if spec.layout in (Layout.PADDED, Layout.PACKED_ROWS):
        checks["has slots that are not rows x width"] = batches.slots != used
    else:
        checks["has slots that are not its events"] = batches.slots != batches.events
    if "rows" in spec.fields:
        checks[f"has more than {rules.policy.rows} rows"] = batches.rows > rules.policy.rows
    if spec.batching is Batching.EVENT_BUDGET:
        checks[f"has more than {rules.policy.max_rows} rows"] = batches.rows > rules.policy.max_rows
    for what, wrong in checks.items():
        if wrong.any():
            yield f"batch {int(np.argmax(wrong))} {what} ({np.count_nonzero(wrong)} such batches)."


def _over_budget(batches: Batches, policy: BatchPolicy) -> Iterator[str]:
    if "token_budget" not in policy.spec.fields:
        return
    in_events = policy.spec.batching is Batching.EVENT_BUDGET
    used = batches.events if in_events else batches.rows * batches.widths
    single = not in_events and policy.oversize is Oversize.SINGLE_ROW
    wrong = (used > policy.token_budget) & ~((batches.rows == 1) & single)
    if wrong.any():
        i = int(np.argmax(wrong))
        yield (
            f"batch {i} has {used[i]} {'events' if in_events else 'slots'}, above token_budget {policy.token_budget} "
            f"({np.count_nonzero(wrong)} such batches)."
        )


def _unequal_steps(plans: list[EpochPlan]) -> Iterator[str]:
    policy = plans[0].policy
    if len(plans) == 1 or plans[0].all_ranks.remainder == "uneven":
        return
    many = [len(plan) for plan in plans]
    if min(many) != max(many):
        yield f"ranks have {min(many)} to {max(many)} batches, so that some wait for ever."
        return
    if policy.spec.batching is not Batching.BUCKETS or policy.pad_to is PadTo.BATCH_MAX:
        return
    shapes: list[tuple[str, list[NDArray[np.int64]]]] = [("widths", [plan.padded_lengths for plan in plans])]
    if policy.has_static_shapes:
        shapes.append(("rows", [plan.rows for plan in plans]))
    for what, columns in shapes:
        table = np.stack(columns)
        wrong = (table != table[0]).any(axis=0)
        if wrong.any():
            step = int(np.argmax(wrong))
            yield f"step {step} has {what} {', '.join(map(str, table[:, step]))} on its ranks."


def _wrong_figures(audit: Audit, plans: list[EpochPlan]) -> Iterator[str]:
    whole = len(plans) == audit.world_size
    claimed = plans[0] if len(plans) == 1 else plans[0].all_ranks
    for name in _CLAIMED if whole else _OF_A_RANK if len(plans) == 1 else ():
        said, counted = getattr(claimed, name), getattr(audit, name)
        if said != counted:
            yield f"the plan says {name} {said}, counted are {counted}."
