"""measure: run a model under a policy on the device at hand and say what it cost, each figure with its origin."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import ArrayLike

from labkit.batching.policy import BatchPolicy
from labkit.bench.environment import environment, name_of
from labkit.bench.observers.utilization import utilization
from labkit.bench.observers.utilization_gpu import GPU_FIGURES
from labkit.bench.record import Record
from labkit.errors import CompileError, LengthsError, PolicyError
from labkit.experiments.device_choice import open_device
from labkit.experiments.execution import DEFAULT_SEQUENCES, Amp, Execution
from labkit.experiments.histories import Histories, from_fields, sampled_lengths, synthetic
from labkit.experiments.measure_run import StrategyRun
from labkit.lengths.histogram import LengthHistogram
from labkit.models.base import RaggedModel
from labkit.models.registry import MODELS, Model, ModelSpec, check_layout, model_spec
from labkit.provenance import Figure
from labkit.units import shown

#: Called with the steps done and the seconds since the first timed step.
OnProgress = Callable[[int, float], object]


@dataclass(frozen=True, eq=False)
class Workload:
    """What is measured: a model and its data. Every strategy starts from the same weights and samples.

    Attributes:
        spec: row of the model table.
        model: the weights that every run starts from; never trained itself.
        data: the samples.

    Raises:
        LengthsError: samples without any event.
        PolicyError: an id that the model has no row for.
    """

    spec: ModelSpec
    model: RaggedModel
    data: Histories

    def __post_init__(self) -> None:
        """Refuse what no strategy could be measured on."""
        data = self.data
        if not data.offsets[-1]:
            raise LengthsError(f"all {len(data)} sequences have length 0: there is no event to measure.")
        for field in self.spec.fields:
            known = None if field.vocabulary is None else self.model.vocabulary(field.name)
            if known is None or known >= (field.vocabulary or 0):
                continue
            most = int((data.events if field.per == "event" else data.rows)[field.name].max(initial=-1))
            if most >= known:
                kind, cure = ("made-up", ", or give real events") if data.made_up else ("given", "")
                raise PolicyError(
                    f"the {kind} ids of {field.name} go up to {most}, and the model has {known} of them: build it with "
                    f"{field.vocabulary}{cure}."
                )

    @classmethod
    def of(
        cls, model: Model | str | RaggedModel, data: Any, *, sequences: int = DEFAULT_SEQUENCES, seed: int = 0
    ) -> Workload:
        """Take a model and data in any form that ``measure`` takes; see there."""
        if isinstance(model, RaggedModel):
            spec = _spec_of(model)
        else:
            spec = model_spec(model)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = spec.build()
        if isinstance(data, Histories):
            return cls(spec, model, data)
        if isinstance(data, Mapping):
            return cls(spec, model, from_fields(spec, data))
        if isinstance(data, LengthHistogram):
            data = sampled_lengths(data, sequences, seed)
        return cls(spec, model, synthetic(spec, data, seed=seed))

    @property
    def title(self) -> str:
        """The model, and whether the events are real."""
        return f"{self.spec.model}, {'made-up' if self.data.made_up else 'real'} events"


def _spec_of(model: RaggedModel) -> ModelSpec:
    for spec in MODELS.values():
        if isinstance(model, spec.load()):
            return spec
    raise PolicyError(f"{type(model).__name__} is no model of the table: derive it from one of {', '.join(Model)}.")


def measure(
    model: Model | str | RaggedModel,
    data: LengthHistogram | ArrayLike | Mapping[str, Any] | Histories,
    policy: BatchPolicy,
    device: str | torch.device = "cpu",
    *,
    seconds: float = 5.0,
    epoch: bool = False,
    train: bool = True,
    warm_up: int = 2,
    amp: Amp | str | None = None,
    compile: bool = False,  # noqa: A002 - torch's own word
    workers: int = 0,
    pin_memory: bool | None = None,
    prefetch: int = 2,
    pad_on_device: bool = False,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Record:
    """Run one strategy for some seconds or an epoch and record what it took.

        record = measure("din", lengths, BatchPolicy("jagged"), "cuda")
        record.events_per_s, record.epoch_s, record.reason["epoch_s"]

    Out of memory is a record whose figures have the reason, with the shape of the batch; so is a model that
    ``torch.compile`` leaves to run eagerly.

    Args:
        model: key of the model table, or a model of it, which is copied, not trained. Made-up ids are within the sizes
            of the table: one that was built with fewer items needs real events.
        data: (N,) lengths or a histogram (the events are made up, as ``histories.synthetic`` says; of a histogram at
            most 20 000 sequences, the longest among them), or real events: field name -> ``Jagged`` or array.
        policy: the strategy and its settings.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        seconds: no step is begun after so long; as many whole epochs are measured as fit, the same batches in a new
            order each time. Where not even one fits, batches of every shape are timed in proportion. ``epoch_error_s``
            is the standard error of what either comes to.
        epoch: measure a whole epoch, however long it takes.
        train: forward, backward and SGD; False: forward alone.
        warm_up: steps before the timed ones, the largest batch first.
        amp: ``bf16``, ``fp16`` or None for float32.
        compile: use ``torch.compile``, with dynamic shapes.
        workers, pin_memory, prefetch, pad_on_device: of the loader; see ``Execution``.
        seed: of plan, samples and weights.
        on_progress: called after each timed step.

    Returns:
        The record; figures that do not exist have a reason.

    Raises:
        PolicyError: model and strategy do not go together, or the policy does not fit the lengths.
        DeviceError: the device is not there.
        LengthsError, ShapeError: data that cannot be used.

    Cost: the seconds asked for, warm-up, and one step more for each of at most 8 shapes.
    """
    execution = Execution(
        seconds=seconds,
        epoch=epoch,
        train=train,
        warm_up=warm_up,
        amp=amp,  # type: ignore[arg-type]  # a key becomes its member
        compile=compile,
        workers=workers,
        pin_memory=pin_memory,
        prefetch=prefetch,
        pad_on_device=pad_on_device,
        seed=seed,
    )
    if not isinstance(policy, BatchPolicy):
        raise PolicyError(f"policy must be a BatchPolicy: got {shown(policy)}. Write BatchPolicy('jagged').")
    opened = open_device(device)
    check_layout(_key(model), policy.strategy)
    return run_policy(Workload.of(model, data, seed=seed), policy, opened, execution, on_progress)


def _key(model: Model | str | RaggedModel) -> Model | str:
    return _spec_of(model).model if isinstance(model, RaggedModel) else model


def run_policy(
    work: Workload,
    policy: BatchPolicy,
    device: torch.device,
    execution: Execution,
    on_progress: OnProgress | None = None,
) -> Record:
    """``measure`` on a device that is open, with a workload that is made.

    Raises:
        PolicyError: the policy does not fit the lengths.
    """
    try:
        figures, reason = _attempt(work, policy, device, execution, on_progress)
    finally:
        _give_back(device)  # after the frame that held the model and its tensors
    return Record.failed(reason, figures=figures, **_who(work, policy, device))


def _attempt(
    work: Workload, policy: BatchPolicy, device: torch.device, execution: Execution, on_progress: OnProgress | None
) -> tuple[dict[str, Figure], str]:
    """Figures, and why there are no others."""
    run: StrategyRun | None = None
    figures: dict[str, Figure] = {}
    try:
        model = copy.deepcopy(work.model).to(device)
        with utilization(device.index if device.type == "cuda" else None) as gauges:
            run = StrategyRun(model, work.data, work.spec.sequences, policy, device, execution, (gauges,))
            figures = run.exact_figures()
            figures = run.run(on_progress)
    except CompileError as error:
        return figures, str(error)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        where = f" at a batch of {run.shape}" if run is not None and run.shape else ""
        why = f"out of memory on {name_of(device)}{where}, {execution.mode}: lower rows, token_budget or max_length"
        return figures, why
    absent = {name: Figure(None, unit, None, f"{device.type} has no such gauge") for name, unit in GPU_FIGURES.items()}
    return absent | figures, "not measured"


def refused(work: Workload, policy: BatchPolicy, device: torch.device, reason: str) -> Record:
    """The record of a strategy that cannot be run here."""
    return Record.failed(reason, **_who(work, policy, device))


def _who(work: Workload, policy: BatchPolicy, device: torch.device) -> dict[str, Any]:
    return {
        "strategy": str(policy.strategy),
        "policy": policy.to_dict(),
        "device": f"{device}: {name_of(device)}",
        "model": work.title,
        "environment": environment(device),
    }


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is out: CUDA's, that of its libraries, the host's, or Python's own."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    texts = (
        "not enough memory",
        "can't allocate memory",
        "Cannot allocate memory",
        "CUDA error: out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
    )
    return isinstance(error, RuntimeError | OSError) and any(text in str(error) for text in texts)


def _give_back(device: torch.device) -> None:
    gc.collect()  # a traceback keeps tensors alive in a cycle
    if device.type == "cuda":
        torch.cuda.empty_cache()
