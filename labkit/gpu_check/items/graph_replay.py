"""A training step of DIN for each bucket: a replayed CUDA graph against eager, the same weights after both."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from labkit.batching.pieces import batch_indices
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.strategies import Strategy
from labkit.experiments.execution import Execution
from labkit.experiments.graphed_step import graphed, one_of_each_shape, with_rows_as_tensor
from labkit.experiments.model_step import ModelStep
from labkit.gpu_check.items.strategies import policies_of, workload
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.runner import Case, Found
from labkit.layouts.collate import collate
from labkit.layouts.moving import to_device

#: Atomic additions come in another order every time.
_RTOL, _ATOL = 1e-4, 1e-5


def cases(lab: Lab) -> Sequence[Case]:
    """A bucket each."""
    policy = next(p for p in policies_of(lab.sizes) if p.strategy is Strategy.BUCKET_GRAPH)
    sampler = BucketBatchSampler(workload(lab.sizes).data.lengths, policy, seed=0)
    plan = sampler.plan
    return [
        Case(
            f"{plan.rows[number]} rows of {plan.padded_lengths[number]} slots",
            partial(_bucket, lab, policy, batch_indices(plan, number)),
        )
        for number in one_of_each_shape(plan)
    ]


def _bucket(lab: Lab, policy: BatchPolicy, indices: Sequence[int]) -> Found:
    backend = lab.graphs(lab.device)
    if backend is None:
        return {"ok": None, "reason": "a CPU has no CUDA graphs"}
    batch = _batch(lab, policy, indices)
    eager, replayed = _step(lab), _step(lab)
    graphs = graphed(replayed, backend)
    graphs.prepare([batch])
    for _ in range(2):
        eager(batch)
        graphs(batch)
    for (name, own), other in zip(eager.model.named_parameters(), replayed.model.parameters(), strict=True):
        torch.testing.assert_close(other, own, rtol=_RTOL, atol=_ATOL, msg=f"{name} differs after two steps")
    assert graphs.fallbacks == 0, f"{graphs.fallbacks} steps fell back to eager"
    plain, replay = lab.timed(lambda: eager(batch)), lab.timed(lambda: graphs(batch))
    speedup = plain["median_s"] / replay["median_s"]
    rows, width = batch.valid.shape
    return {
        "rows": rows,
        "width": width,
        "eager": plain,
        "replay": replay,
        "speedup": speedup,
        "shown": f"eager {plain['median_s'] * 1e3:.3f} ms, replay {replay['median_s'] * 1e3:.3f} ms, {speedup:.2f} x",
    }


def _batch(lab: Lab, policy: BatchPolicy, indices: Sequence[int]) -> Any:
    work = workload(lab.sizes)
    made = collate(policy, histogram=work.data.lengths, sequences=work.spec.sequences)
    return to_device(with_rows_as_tensor(made(work.data.__getitems__(indices))), lab.device)


def _step(lab: Lab) -> ModelStep:
    """A training step from the weights of the workload."""
    return ModelStep(copy.deepcopy(workload(lab.sizes).model).to(lab.device), lab.device, Execution())
