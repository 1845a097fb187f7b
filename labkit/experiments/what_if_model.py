"""What a model and a GPU add to a what-if: launches, kernels, peak memory, time, busy share and what rules the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.batching.strategies import Layout, Strategy
from labkit.batching.what_if import WhatIf
from labkit.cost.devices import Gpu, Precision
from labkit.cost.estimate import Launched, Timed, launched, timed
from labkit.cost.mix import BatchMix, batch_mix
from labkit.cost.overheads import ASSUMED, Overheads
from labkit.cost.step_time import Bound
from labkit.errors import LabkitError, PolicyError
from labkit.experiments.model_cost import Mode, strategy_cost
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model, above_positions, model_spec
from labkit.provenance import Figure, Origin
from labkit.units import format_bytes

#: Figures that need a model, and those that need a GPU too, with their units.
OF_MODEL = {"launches": "launches", "kernels": "kernels", "peak_bytes": "bytes"}
OF_GPU = {"time_s": "s", "step_s": "s", "utilization": "1", "useful_s": "s", "padding_s": "s", "gap_s": "s"}

NEEDS_A_MODEL = "needs a model: lengths and a policy do not tell it"
NEEDS_A_GPU = "needs a GPU: --gpu NAME"
_NO_BATCHES = "there is no batch"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What to model.

    Attributes:
        model: which.
        gpu: for which GPU; None: what needs one is left out.
        mode: training steps, or forward passes.
        precision: of matrix products.
        overheads: of launches; assumed, or fitted by ``calibrate``.

    Raises:
        GpuError: the GPU lacks the precision.
        PolicyError: a precision with casts between its ops, which are not traced.
    """

    model: Model
    gpu: Gpu | None = None
    mode: Mode = Mode.TRAIN
    precision: Precision = Precision.FLOAT32
    overheads: Overheads = ASSUMED

    def __post_init__(self) -> None:
        """Refuse a precision that cannot be modelled before anything is."""
        if self.precision not in (Precision.FLOAT32, Precision.TF32):
            raise PolicyError(
                f"precision {self.precision} is not modelled: the casts of mixed precision are not traced, choose "
                "float32 or tf32."
            )
        if self.gpu is not None:
            self.gpu.matmul_flops(self.precision)

    @property
    def title(self) -> str:
        """Model, mode, GPU and precision in words."""
        device = "" if self.gpu is None else f" on {self.gpu.name}, {self.precision}"
        return f"{self.model}, {'training' if self.mode is Mode.TRAIN else 'inference'}{device}"


@dataclass(frozen=True, slots=True)
class Modelled:
    """The figures of one strategy.

    Attributes:
        figures: by name, all of ``OF_MODEL`` and ``OF_GPU``; what does not exist says why.
        bound: what rules the largest part of the time; None where there is no time.
        bound_reason: how that was found, or why it is None.
        refusal: why model and strategy do not go together; None where they do.
        fits: whether the peak is within the memory of the GPU; None where there is no GPU or no peak.
        bound_share: share of the time that the bound rules; None where there is no time.
    """

    figures: dict[str, Figure]
    bound: Bound | None
    bound_reason: str
    refusal: str | None = None
    fits: bool | None = None
    bound_share: float | None = None

    @classmethod
    def nothing(cls, why: str) -> Modelled:
        """No figure exists, for one reason."""
        units = OF_MODEL | OF_GPU
        return cls({name: Figure(None, unit, None, why) for name, unit in units.items()}, None, why)

    @classmethod
    def refused(cls, why: str) -> Modelled:
        """Model and strategy do not go together."""
        none = cls.nothing(why)
        return cls(none.figures, None, why, why)


def modelled(scored: WhatIf, histogram: LengthHistogram, choice: ModelChoice) -> Modelled:
    """Model one strategy that was scored on these lengths.

    Cost: some hundred microseconds, once the model was traced (``step_cost``).
    """
    strategy = scored.policy.strategy
    try:
        cost = strategy_cost(choice.model, strategy, choice.mode)
    except LabkitError as error:
        return Modelled.refused(str(error))
    mix, is_graph = batch_mix(scored, histogram), strategy is Strategy.BUCKET_GRAPH
    if (too_long := _too_long(choice.model, scored, histogram, mix)) is not None:
        return Modelled.nothing(too_long)
    on_any = launched(cost, mix, is_graph=is_graph)
    figures = _launched_figures(on_any, choice, mix.how, is_graph=is_graph, largest=_largest(scored))
    if choice.gpu is None:
        return Modelled(figures | _none(NEEDS_A_GPU), None, NEEDS_A_GPU)
    on_gpu = timed(
        cost,
        mix,
        choice.gpu,
        padding_ratio=scored.padding_ratio,
        is_graph=is_graph,
        precision=choice.precision,
        overheads=choice.overheads,
    )
    if on_gpu is None:
        return Modelled(figures | _none(_NO_BATCHES), None, _NO_BATCHES)
    how = f"{choice.title}: roofline and launch overheads ({choice.overheads.source}); {mix.how}"
    parts = f"compute {on_gpu.compute_s:.3g} s, bandwidth {on_gpu.bandwidth_s:.3g} s, launch {on_gpu.launch_s:.3g} s"
    why = (
        f"what rules the largest part of the time: {parts} (launch: whole steps in which the host takes longer than "
        f"the device, else starting kernels); {how}"
    )
    fits = on_any.peak_bytes <= choice.gpu.memory_bytes
    return Modelled(figures | _timed_figures(on_gpu, how), on_gpu.bound, why, None, fits, on_gpu.bound_share)


def refuse_if_none_fits(found: Iterable[Modelled]) -> None:
    """Refuse a model that goes with none of the strategies asked for.

    Raises:
        PolicyError: with the reason of the first.
    """
    refusals = [m.refusal for m in found]
    if refusals and all(refusals):
        raise PolicyError(str(refusals[0]))


def _too_long(model: Model, scored: WhatIf, histogram: LengthHistogram, mix: BatchMix) -> str | None:
    """What the model says to the longest row or pack; None where it takes it."""
    most = model_spec(model).max_positions
    if most is None:
        return None
    what, longest = "longest row", histogram.capped(scored.policy.max_length).max
    if scored.policy.spec.layout is Layout.PADDED:
        what, longest = "width", _widest(mix)
    elif scored.policy.spec.layout is Layout.PACKED_ROWS:
        what, longest = "width of the packs", _widest(mix)
    return above_positions(what, longest, most) if longest > most else None


def _widest(mix: BatchMix) -> int:
    return int(max(shapes.width.max(initial=0) for shapes in (mix.shapes, mix.largest)))


def _largest(scored: WhatIf) -> str:
    """What the peak is a peak of, and whether such a batch occurs."""
    bound = scored.reason.get("largest_batch_slots")
    return "the largest batch" if bound is None else f"the largest batch that there can be ({bound})"


def _launched_figures(
    found: Launched, choice: ModelChoice, how: str, *, is_graph: bool, largest: str
) -> dict[str, Figure]:
    kernels = f"{choice.title}: kernels of PyTorch's CUDA backend, counted by op in its source, not profiled; {how}"
    launches = f"one graph replay a batch; {how}" if is_graph else f"one a kernel; {kernels}"
    memory = f"tensors of a step on {largest}, in blocks of 512 B; without scratch memory and CUDA context"
    if is_graph:
        memory += (
            ", the inputs that the graph of each shape keeps, and what the pool of the graphs holds beyond one step"
        )
    if choice.gpu is not None and found.peak_bytes > choice.gpu.memory_bytes:
        memory += f"; above the {format_bytes(choice.gpu.memory_bytes)} of {choice.gpu.name}"
    return {
        "launches": Figure(_whole(found.launches), "launches", Origin.MODELLED, launches),
        "kernels": Figure(_whole(found.kernels), "kernels", Origin.MODELLED, kernels),
        "peak_bytes": Figure(found.peak_bytes, "bytes", Origin.MODELLED, memory)
        if found.steps
        else Figure(None, "bytes", None, _NO_BATCHES),
    }


def _timed_figures(found: Timed, how: str) -> dict[str, Figure]:
    why = {
        "utilization": "share of the time in which a kernel runs (time-active, not SM-active)",
        "useful_s": "kernels run, for real events",
        "padding_s": "kernels run, for padding: their time by its share of the slots",
        "gap_s": "no kernel runs",
        "step_s": "the mean step",
    }
    values = {name: getattr(found, "busy_share" if name == "utilization" else name) for name in OF_GPU}
    return {
        name: Figure(value, OF_GPU[name], Origin.MODELLED, f"{why[name]}; {how}" if name in why else how)
        for name, value in values.items()
    }


def _none(why: str) -> dict[str, Figure]:
    return {name: Figure(None, unit, None, why) for name, unit in OF_GPU.items()}


def _whole(count: float) -> int | float:
    return int(count) if float(count).is_integer() else count
