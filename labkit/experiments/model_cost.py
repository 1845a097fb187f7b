"""step_cost: what a step of a model costs in a layout, at any batch shape, from a few traces on meta tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from threading import Lock
from typing import Any

from labkit.batching.fields import choice
from labkit.batching.strategies import Layout, Strategy
from labkit.cost.shapes import BASES, BatchShape
from labkit.cost.step_cost import StepCost, Traced, fit_step, refuse_misfit
from labkit.models.registry import Model, ModelSpec, check_layout, model_spec


class Mode(StrEnum):
    """What a step does."""

    TRAIN = "train"  # forward, backward, SGD: as it is measured
    INFERENCE = "inference"  # forward alone


@dataclass(frozen=True, slots=True)
class Sample:
    """A batch to trace: lengths, and the width or capacity where a layout has one."""

    lengths: tuple[int, ...]
    width: int | None = None


#: Batches whose shapes tell the terms of each basis apart, and at the end one more, on which the fit is checked. No
#: size is 1 and no two of a batch are equal: broadcasting and transposition treat those in their own way.
_SAMPLES: dict[Layout, tuple[Sample, ...]] = {
    Layout.PADDED: (
        Sample((3, 2), 4),
        Sample((3, 2), 5),
        Sample((4, 2), 7),
        Sample((4, 2, 3), 5),
        Sample((2, 6, 3), 7),
        Sample((5, 3, 2, 4), 9),
        Sample((7, 1, 6, 2, 0), 11),
    ),
    Layout.JAGGED: (
        Sample((5, 3)),
        Sample((7, 2)),
        Sample((7, 4, 3)),
        Sample((9, 2, 3)),
        Sample((6, 4, 3, 2)),
        Sample((4, 4, 3, 2, 2)),
        Sample((6, 3, 5, 2, 4, 6)),
        Sample((8, 5, 0, 4, 6)),
    ),
    Layout.SEGMENTED: (Sample((5, 3)), Sample((7, 4, 3)), Sample((6, 4, 3, 2, 5)), Sample((8, 5, 0, 4, 6))),
    Layout.SPARSE: (Sample((5, 3)), Sample((7, 4, 3)), Sample((6, 4, 3, 2, 5)), Sample((8, 5, 0, 4, 6))),
    Layout.PACKED_ROWS: (
        Sample((4, 3, 3), 5),
        Sample((4, 4, 3, 2), 7),
        Sample((6, 6, 5, 2), 8),
        Sample((9, 8, 3, 2, 1), 10),
        Sample((8, 7, 6, 5), 9),
        Sample((5, 5, 5, 5, 2), 6),
        Sample((7, 7, 7, 4), 11),
        Sample((12, 9, 8, 5, 4, 2, 1), 13),
    ),
    Layout.PACKED_SEQUENCE: (
        Sample((5, 3)),
        Sample((7, 2)),
        Sample((7, 4, 3)),
        Sample((9, 2, 3)),
        Sample((6, 4, 0, 3, 2)),
        Sample((8, 5, 3, 0, 4, 0, 6)),
    ),
}
_LOCK = Lock()


def step_cost(model: Model | str, layout: Layout | str, mode: Mode | str = Mode.TRAIN) -> StepCost:
    """Trace a model, fit its cost and check the fit at a shape it has not seen. Remembered for the process.

    A training step is what ``measure`` runs: the loss, its gradient and plain SGD, whose update runs as one kernel over
    all parameters, as torch does on CUDA. Matrix products are counted alike in every precision of float32 storage.

    Raises:
        PolicyError: the model does not take the layout, or does not exist.
        CostError: an op without a rule, or a cost that is no sum of the terms of the layout.

    Cost: about half a second the first time, some seconds more where torch is not loaded yet; then nothing.
    """
    key = model_spec(model).model, choice("layout", layout, Layout), choice("mode", mode, Mode)
    with _LOCK:  # two threads that ask for the same cost trace it once
        return _step_cost(*key)


def strategy_cost(model: Model | str, strategy: Strategy | str, mode: Mode | str = Mode.TRAIN) -> StepCost:
    """The cost of a step in the layout of a strategy.

    Raises:
        PolicyError: they do not go together; the message names what does.
    """
    return step_cost(model, check_layout(model, strategy), mode)


@lru_cache(maxsize=64)
def _step_cost(model: Model, layout: Layout, mode: Mode) -> StepCost:
    return fit_model(model_spec(model), layout, mode)


def fit_model(spec: ModelSpec, layout: Layout, mode: Mode, **sizes: Any) -> StepCost:
    """Trace, fit and check a model of any size, without remembering it; ``sizes`` as in ``spec.build``."""
    import torch  # not at the top: the command line asks for its options without it

    samples = _SAMPLES[layout]
    with torch.device("meta"):
        built = spec.build(**sizes)
    traced = [trace_sample(built, spec, layout, sample, mode) for sample in samples]
    cost = fit_step(BASES[layout], [shape for shape, _ in traced[:-1]], [trace for _, trace in traced[:-1]])
    refuse_misfit(cost, *traced[-1])
    return cost


def trace_sample(
    built: Any, spec: ModelSpec, layout: Layout, sample: Sample, mode: Mode, device: str = "meta"
) -> tuple[BatchShape, Traced]:
    """Trace one step of a built model on a batch of the given lengths, and say what shape the batch has."""
    import torch

    from labkit.cost.allocations import tensors_in
    from labkit.cost.trace import trace_step

    batch = sample_batch(spec, layout, sample, device)
    if layout is Layout.SPARSE:
        batch = _all_distinct(batch)
    held = (*built.parameters(), *built.buffers(), *tensors_in(batch))
    if mode is Mode.INFERENCE:
        built.eval()
        with torch.no_grad():
            traced = trace_step(lambda: built(batch), backward=False, held=held, device=device).traced()
        return shape_of(batch), traced
    built.train()
    built.zero_grad(set_to_none=True)
    # foreach is what torch takes by itself on CUDA; it allocates nothing
    optimizer = torch.optim.SGD(built.parameters(), lr=0.01, foreach=True)
    trace = trace_step(lambda: built.loss(batch).mean, optimizer=optimizer.step, held=held, device=device)
    return shape_of(batch), trace.traced()


def sample_batch(spec: ModelSpec, layout: Layout, sample: Sample, device: str) -> Any:
    """A batch of the given lengths in a layout."""
    from labkit.models.inputs import example_batch

    match layout:
        case Layout.PADDED:
            return example_batch(spec, layout, sample.lengths, width=sample.width, device=device)
        case Layout.PACKED_ROWS:
            return example_batch(spec, layout, sample.lengths, capacity=sample.width, device=device)
        case _:
            return example_batch(spec, layout, sample.lengths, device=device)


def _all_distinct(batch: Any) -> Any:
    """The sparse batch with an entry for every event, as if no row held an item twice: the most that there can be."""
    events = batch.row_ids.shape[0]

    def grown(part: Any) -> Any:
        names = ("columns", "counts", "row_ids")
        return part._replace(**{name: getattr(part, name).new_empty(events) for name in names})

    return batch._replace(counts={name: grown(part) for name, part in batch.counts.items()})


def shape_of(batch: Any) -> BatchShape:
    """The sizes of a batch that costs depend on."""
    from labkit.layouts.jagged_batch import JaggedBatch, longest_row
    from labkit.layouts.packed import PackedBatch
    from labkit.layouts.packed_rnn import PackedSequenceBatch
    from labkit.layouts.padded import PaddedBatch
    from labkit.layouts.segmented import SegmentedBatch
    from labkit.layouts.sparse import SparseBatch

    match batch:
        case PaddedBatch():
            rows, width = batch.valid.shape
            return BatchShape(rows=rows, width=width)
        case PackedBatch():
            rows, width = batch.segment_ids.shape
            return BatchShape(rows=rows, width=width, segments=batch.lengths.shape[0])
        case JaggedBatch():
            return BatchShape(rows=batch.offsets.shape[0] - 1, events=_events(batch), longest=longest_row(batch))
        case SegmentedBatch():
            return BatchShape(rows=batch.offsets.shape[0] - 1, events=_events(batch))
        case SparseBatch():
            return BatchShape(rows=batch.offsets.shape[0] - 1, events=batch.row_ids.shape[0])
        case PackedSequenceBatch():
            steps, filled = batch.batch_sizes.shape[0], batch.filled_rows.shape[0]
            return BatchShape(rows=batch.lengths.shape[0], events=batch.events, longest=steps, filled=filled)
        case _:
            raise NotImplementedError(f"the shape of a {type(batch).__name__} is not known: extend shape_of")


def _events(batch: Any) -> int:
    values: Sequence[Any] = list(batch.values.values()) if isinstance(batch.values, dict) else [batch.values]
    return int(values[0].shape[0])
