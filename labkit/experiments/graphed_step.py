"""CUDA graphs for ``bucket_graph``: every shape of an epoch captured before the clock starts, then replayed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from labkit.batching.plan import EpochPlan
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.bench.graph_backend import CudaGraphs
from labkit.bench.graphs import GraphBackend, GraphedSteps
from labkit.bench.training_state import check_capturable, training_state
from labkit.experiments.model_step import ModelStep
from labkit.provenance import Figure, Origin


class Counts(NamedTuple):
    """Calls that a graph served, and calls that ran launch by launch."""

    replays: int
    fallbacks: int


def graph_backend(device: torch.device) -> GraphBackend | None:
    """What captures and replays on a device; None where there are no CUDA graphs."""
    return CudaGraphs(device) if device.type == "cuda" else None


def graphed(step: ModelStep, backend: GraphBackend) -> GraphedSteps[Any, None]:
    """A step that replays a graph of each shape; those that were not prepared run launch by launch, counted.

    Raises:
        DeviceError: an optimizer that cannot be captured.
    """
    state = None
    if step.optimizer is not None:
        check_capturable(step.optimizer)
        state = training_state(step.model, step.optimizer, step.scaler)
    return GraphedSteps(step, backend, on_first_sight=False, state=state)


def with_rows_as_tensor(batch: Any) -> Any:
    """The batch with its real rows as a () tensor.

    A number would become part of the graph: batches with another number of ghost rows would need one of their own.
    """
    return batch._replace(rows=torch.tensor(batch.rows))


def one_of_each_shape(plan: EpochPlan) -> list[int]:
    """The first batch of every (rows, width), that with the most slots first: graphs share memory, the largest's."""
    shapes = np.stack([plan.rows, plan.padded_lengths])
    unique, first = np.unique(shapes, axis=1, return_index=True)
    chosen: list[int] = first[np.argsort(-unique.prod(axis=0), kind="stable")].tolist()
    return chosen


def graph_counts(graphs: GraphedSteps[Any, None] | None) -> Counts:
    """Replays and fallbacks so far; zeros without graphs."""
    return Counts(0, 0) if graphs is None else Counts(graphs.replays, graphs.fallbacks)


def graph_figures(
    policy: BatchPolicy, graphs: GraphedSteps[Any, None] | None, before: Counts, after: Counts
) -> dict[str, Figure]:
    """Graphs captured, and steps of the timed loop that were replayed or fell back; or why there are none."""
    if graphs is not None:
        timed = "of the timed steps"
        return {
            "graph_captures": Figure(graphs.captures, "1", Origin.MEASURED, "one a shape, before the clock started"),
            "graph_replays": Figure(after.replays - before.replays, "1", Origin.MEASURED, timed),
            "graph_fallbacks": Figure(after.fallbacks - before.fallbacks, "1", Origin.MEASURED, timed),
        }
    if policy.strategy is Strategy.BUCKET_GRAPH:
        why = "a CPU has no CUDA graphs: the same batches ran eagerly"
    else:
        why = f"{policy.strategy} is launched op by op"
    return {name: Figure(None, "1", None, why) for name in ("graph_captures", "graph_replays", "graph_fallbacks")}
