"""The samplers of the comparison: with a budget on a batch, and with a number of rows."""

from __future__ import annotations

from tests.benchmarks.peers import with_labkit, with_lhotse, with_speechbrain, with_transformers
from tests.benchmarks.peers.samplers import BUCKETS, BUDGET, ROWS, Sampler

SAMPLERS = (
    Sampler(
        "labkit bucket_budget",
        own=True,
        budgeted=True,
        prepare=lambda lengths: with_labkit.prepare_budget(lengths, BUCKETS, BUDGET),
    ),
    Sampler(
        "Lhotse DynamicBucketingSampler",
        own=False,
        budgeted=True,
        prepare=lambda lengths: with_lhotse.prepare(lengths, BUCKETS, BUDGET),
    ),
    Sampler(
        "SpeechBrain DynamicBatchSampler",
        own=False,
        budgeted=True,
        prepare=lambda lengths: with_speechbrain.prepare(lengths, BUCKETS, BUDGET),
    ),
    Sampler(
        "labkit bucket_rows",
        own=True,
        budgeted=False,
        prepare=lambda lengths: with_labkit.prepare_rows(lengths, BUCKETS, ROWS),
    ),
    Sampler(
        "transformers LengthGroupedSampler",
        own=False,
        budgeted=False,
        prepare=lambda lengths: with_transformers.prepare_grouped(lengths, ROWS),
    ),
    Sampler(
        "transformers BatchRebalanceSampler",
        own=False,
        budgeted=False,
        prepare=lambda lengths: with_transformers.prepare_rebalanced(lengths, ROWS),
    ),
)
