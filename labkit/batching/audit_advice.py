"""What an audit says in words: one sentence of advice, and what a user should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Batching, Layout, StrategySpec
from labkit.units import format_share

if TYPE_CHECKING:
    from labkit.batching.audit import Audit

# Rules of thumb, not laws: what padding costs depends on the model. Measure before a rewrite.
#: Below this share of padding another layout hardly pays.
PAD_BELOW = 0.30
#: Below this one buckets are enough.
BUCKET_BELOW = 0.60
#: C12 of Hugging Face Transformers issue 20810 and Lhotse issue 364: sorted batches are not shuffled. With so many
#: batches a correlation as high as this one is no chance.
LAG1_BATCHES, LAG1_ABOVE = 500, 0.2
#: Ranks that wait a tenth of each step are worth balancing.
STRAGGLER_ABOVE = 1.1
#: More repetitions than this, as a share of the sequences, weigh some users more than the rest.
REPEATED_ABOVE = 0.1
#: What a plan with little padding goes on doing; all others pad.
_DOES = {Batching.BUCKETS: "bucket", Batching.PACKS: "pack"}


def advice(audit: Audit, spec: StrategySpec) -> str:
    """One sentence: whether to pad, to bucket, or to leave padding altogether; and which norm goes with it."""
    if not audit.batches:
        return "There is no batch: use fewer rows, or drop_last=False."
    if not audit.kept_events:
        return "The batches have no event: there is nothing to pad, to bucket or to pack."
    padding = f"Padding is {format_share(audit.padding_ratio)}"
    if spec.layout not in (Layout.PADDED, Layout.PACKED_ROWS):
        found = "Nothing is padded: keep this layout if its kernels are fast enough"
    elif audit.padding_ratio < PAD_BELOW:
        found = f"{padding}, under {100 * PAD_BELOW:.0f} %: {_DOES.get(spec.batching, 'pad')}, as this plan does"
    elif spec.batching is Batching.PACKS:
        found = f"{padding} in spite of the packs: use another capacity, more sequences a pack, or jagged"
    elif audit.padding_ratio >= BUCKET_BELOW:
        found = f"{padding}, {100 * BUCKET_BELOW:.0f} % or more: use jagged, packed or segmented"
    elif spec.batching is Batching.BUCKETS:
        found = f"{padding} in spite of the buckets: use optimal edges, or more of them"
    else:
        limits = f"between {100 * PAD_BELOW:.0f} % and {100 * BUCKET_BELOW:.0f} %"
        found = f"{padding}, {limits}: bucket by length (bucket_budget)"
    if audit.rows_min != audit.rows_max:
        found += f"; rows vary from {audit.rows_min} to {audit.rows_max} a batch, so use LayerNorm, not BatchNorm"
    return found + "."


def warnings_of(audit: Audit, policy: BatchPolicy, broken: bool = False) -> tuple[str, ...]:
    """What is not wrong, and still should be known; ``broken``: the arrays of the plan do not fit one another."""
    found = []
    if broken:
        found.append("the figures are of what the plan's arrays have in common; mend its faults and audit it again.")
    for bucket in audit.buckets:
        if bucket.edge is None:
            found.append(
                f"above the last edge: {bucket.sequences} sequences are dropped, {bucket.events_lost} events lost."
            )
        elif bucket.sequences and not bucket.batches and bucket.sequences_dropped:
            found.append(
                f"bucket up to length {bucket.edge}: its {bucket.sequences} sequences fill no batch, so they are never "
                "trained on. Use fewer rows, wider buckets, drop_last=False or remainder 'repeat'."
            )
    if audit.batches_over_budget:
        found.append(
            f"{audit.batches_over_budget} batches are above token_budget {policy.token_budget}, by up to "
            f"{audit.overshoot}: single rows wider than the budget."
        )
    if audit.lag1 is not None and audit.batches >= LAG1_BATCHES and abs(audit.lag1) > LAG1_ABOVE:
        found.append(
            f"batches come in order of length (lag-1 correlation {audit.lag1:.2f}): use shuffle and batch_order "
            "'shuffled'."
        )
    if audit.straggler > STRAGGLER_ABOVE:
        found.append(
            f"ranks wait: the slowest takes {audit.straggler:.2f} times the mean of a step. Use balance 'slots', or "
            "'quadratic' for attention."
        )
    if audit.sequences_repeated > REPEATED_ABOVE * audit.sequences:
        found.append(
            f"{audit.sequences_repeated} places are repetitions, for {audit.sequences} sequences: buckets have few "
            f"batches for {audit.world_size} ranks. Use smaller batches, fewer buckets or ranks, or remainder 'uneven'."
        )
    return tuple(found)
