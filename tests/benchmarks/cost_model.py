"""The cost model: exact where it says so, and fast enough for a table that follows a slider."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils._pytree import tree_map_only

from labkit.batching.strategies import Layout
from labkit.batching.what_if import what_if
from labkit.cost.allocations import AllocationTrace, tensors_in
from labkit.cost.devices import gpu
from labkit.cost.memory import peak_bytes
from labkit.cost.shapes import Shapes
from labkit.cost.step_cost import refuse_misfit
from labkit.errors import CostError
from labkit.experiments.execution import Execution
from labkit.experiments.lineup import Lineup, policies
from labkit.experiments.model_cost import Mode, Sample, fit_model, sample_batch, shape_of, step_cost, trace_sample
from labkit.experiments.model_step import ModelStep
from labkit.experiments.what_if_model import ModelChoice, Modelled, modelled
from labkit.models.registry import MODELS, Model
from tests.benchmarks import sizes
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import Samples, repeat

#: Far from the traced shapes, which have no more than 13 events a row.
HELD_OUT = (97, 3, 0, 40, 160, 8, 1, 77)
WIDTH = 200


def misfits() -> Iterator[bool]:
    """For each model, layout and mode, whether any op differs at the held-out shape."""
    for model, spec in MODELS.items():
        for layout in spec.takes:
            for mode in Mode:
                cost = step_cost(model, layout, mode)
                with torch.device("meta"):
                    built = spec.build()
                try:
                    refuse_misfit(cost, *trace_sample(built, spec, layout, Sample(HELD_OUT, WIDTH), mode))
                except CostError:
                    yield True
                else:
                    yield False


def run_exact(quick: bool) -> Measurement:
    found = list(misfits())
    detail = f"{len(found)} combinations of model, layout, training or inference; flops, bytes, kernels of every op"
    return Measurement("misfits", Samples((float(sum(found)),)), detail)


#: Where the CPU does what CUDA does. It has no cuDNN network; its embedding_bag keeps other notes, as its gradient of a
#: pooled table does; and an item twice in a history is one entry of a sparse matrix, modelled as two.
EQUAL = [
    (model, layout)
    for model, spec in MODELS.items()
    for layout in spec.takes
    if layout in (Layout.PADDED, Layout.PACKED_ROWS, Layout.JAGGED) and model is not Model.GRU4REC
    if layout is not Layout.JAGGED or model in (Model.DIN, Model.SASREC)
]


def peaks(model: Model, layout: Layout, lengths: tuple[int, ...]) -> tuple[int, int]:
    """Peak bytes of a real training step on the CPU, and of the fit."""
    spec = MODELS[model]
    torch.manual_seed(0)
    built = spec.build()
    batch = tree_map_only(torch.Tensor, torch.clone, sample_batch(spec, layout, Sample(lengths, WIDTH), "cpu"))
    step = ModelStep(built, torch.device("cpu"), Execution())
    with AllocationTrace() as trace:
        trace.hold((*built.parameters(), *tensors_in(batch)))
        step(batch)
    (fitted,) = peak_bytes(fit_model(spec, layout, Mode.TRAIN), Shapes.of([shape_of(batch)])).tolist()
    return trace.peak_bytes, int(fitted)


def run_peak(quick: bool) -> Measurement:
    """Each model and layout: the fitted peak against that of a real step on the CPU, rows spread and rows full."""
    worst, bounds = 0, [1.0, 1.0]
    for lengths in (HELD_OUT * (4 if quick else 16), (WIDTH,) * 16):
        for model, spec in MODELS.items():
            for layout in spec.takes:
                traced, fitted = peaks(model, layout, lengths)
                if (model, layout) in EQUAL:
                    worst = max(worst, abs(fitted - traced))
                else:
                    bounds = [min(bounds[0], fitted / traced), max(bounds[1], fitted / traced)]
    detail = (
        f"{len(EQUAL)} of {sum(len(spec.takes) for spec in MODELS.values())} models and layouts, training, rows spread "
        f"and full; the others, whose CPU ops differ, {bounds[0]:.3f} to {bounds[1]:.3f} of the traced"
    )
    return Measurement("bytes", Samples((float(worst),)), detail)


def run_speed(quick: bool) -> Measurement:
    """The figures of a model on a GPU, of every strategy; what-ifs and edges are ``slider-move``'s."""
    histogram, choice = sizes.full_histogram(quick), ModelChoice(Model.DIN, gpu("H100"))
    lineup = Lineup(bucket_edges=(2, 5, 12, 30, 40, 1200, 2500, histogram.max), token_budget=16_384)
    moved = [what_if(histogram, policy) for policy in policies(histogram, lineup)]

    def move() -> list[Modelled]:
        # nothing is remembered but the traces, so that the same what-ifs will do
        return [modelled(w, histogram, choice) for w in moved]

    samples = repeat(move, repeats=20 if quick else 100, warm_up=3)
    detail = f"{len(moved)} strategies, DIN training on H100, {histogram.distinct} distinct lengths"
    return Measurement("s", samples, detail)


EXACT = Benchmark(
    "cost-exact", "cost model, held-out shape: flops, bytes, launches not exact", Bar(0, "misfits"), run_exact
)
PEAK = Benchmark("cost-peak", "cost model, peak memory against the traced CPU peak", Bar(0, "bytes"), run_peak)
SPEED = Benchmark("cost-move", "modelled figures, all strategies, one move", Bar(5e-3, "s"), run_speed)
