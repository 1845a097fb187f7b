"""transformers: LengthGroupedSampler and BatchRebalanceSampler, both with a fixed number of rows.

In their favour: lengths are a list of Python integers, as they ask for; the flat list of indices that
``get_length_grouped_indices`` returns is cut into batches by slices, the cheapest way there is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.peers.samplers import Prepared

SEED = 1

#: Batches of an optimizer step, among which BatchRebalanceSampler balances (gradient accumulation on one device).
STEP_BATCHES = 8


def prepare_grouped(lengths: NDArray[np.int32], rows: int) -> Prepared:
    """What ``LengthGroupedSampler`` runs for an epoch: chunks of 50 batches, each sorted by length."""
    import torch
    from transformers.trainer_pt_utils import get_length_grouped_indices

    numbers = lengths.tolist()

    def plan() -> list[list[int]]:
        order = get_length_grouped_indices(numbers, rows, generator=torch.Generator().manual_seed(SEED))
        return [order[start : start + rows] for start in range(0, len(order), rows)]

    return Prepared(plan)


def prepare_rebalanced(lengths: NDArray[np.int32], rows: int) -> Prepared:
    """``BatchRebalanceSampler``: as many rows a batch on average, fewer where they are long."""
    from transformers.trainer_pt_utils import BatchRebalanceSampler

    numbers = lengths.tolist()

    def plan() -> list[list[int]]:
        sampler = BatchRebalanceSampler(
            numbers,
            effective_batch_size=rows * STEP_BATCHES,
            dp_size=1,
            grad_accum=STEP_BATCHES,
            seed=SEED,
            drop_last=False,
        )
        return list(sampler)

    return Prepared(plan)
