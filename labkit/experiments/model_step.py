"""ModelStep: what one batch makes a model do: a training step or a forward pass, eager or compiled."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from labkit.bench.ranges import nvtx_phase
from labkit.errors import CompileError, MissingPackageError
from labkit.experiments.execution import Amp, Execution
from labkit.layouts.batch import Batch
from labkit.models.base import Loss, RaggedModel
from labkit.provenance import Figure, Origin

#: Of plain SGD, which keeps no state: what is measured is the model and the data, not a choice of optimizer.
LEARNING_RATE = 0.01

_DTYPES = {Amp.BF16: torch.bfloat16, Amp.FP16: torch.float16}


class ModelStep:
    """One step of a model on batches that lie on its device.

    Training is ``zero_grad``, loss, backward, SGD; inference a forward pass in inference mode. fp16 training scales the
    loss; its SGD is fused, which looks for gradients that overflowed on the device: torch's plain one asks from the
    host at every step, so that no CUDA graph could hold it. Profilers see the phases as ranges: ``forward`` (with the
    loss), ``backward``, ``optimizer``; a graph's replay has none.

    Args:
        model: on its device; its weights change.
        execution: train or not, precision, compile.

    Attributes:
        model: in training or evaluation mode.
        optimizer: of its parameters; None for inference.
        scaler: of the loss; enabled for fp16 training alone.
        graphs_compiled: graphs that ``torch.compile`` has made so far; 0 without it.

    Raises:
        MissingPackageError: ``compile`` on a CPU without a C++ compiler.
    """

    def __init__(self, model: RaggedModel, device: torch.device, execution: Execution) -> None:
        """Prepare the optimizer, the precision and the compiler."""
        self.model = model.train(execution.train)
        self.graphs_compiled = 0
        self._device, self._amp, self._train = device, execution.amp, execution.train
        scaled = execution.train and execution.amp is Amp.FP16
        self.optimizer = (
            torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, fused=scaled or None) if execution.train else None
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        self._loss: Callable[[Batch], Loss] = model.loss
        self._forward: Callable[[Batch], Tensor] = model
        if execution.compile:
            if device.type == "cpu":
                _require_compiler()
            # Dynamo counts the graphs of a code object over all models of the process: after 8 the next one would run
            # eagerly. What it has compiled also keeps those models alive
            torch.compiler.reset()
            # dynamic from the start: rows and widths change from batch to batch, and one graph for all of them is what
            # a job would ship; with static shapes every new one would be compiled, up to a limit, and then fall back
            self._loss = torch.compile(self._loss, dynamic=True, backend=self._inductor)
            self._forward = torch.compile(self._forward, dynamic=True, backend=self._inductor)

    def __call__(self, batch: Batch) -> None:
        """Do the step."""
        if self.optimizer is None:
            with nvtx_phase("forward"), torch.inference_mode(), self._precision():
                self._forward(batch)
            return
        self.optimizer.zero_grad(set_to_none=True)
        with nvtx_phase("forward"), self._precision():
            loss = self._loss(batch).mean
        with nvtx_phase("backward"):
            self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        with nvtx_phase("optimizer"):
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def loss_figures(self, batch: Batch) -> dict[str, Figure]:
        """The loss of a batch in the precision that is measured and in float32, with the same weights.

        Returns:
            ``loss``, ``loss_float32`` and ``loss_difference``, |loss - float32| / |float32|.

        Dropout is off: two draws of it would differ by more than two precisions, and the draws of the steps to come
        would not be those of a run without this.

        Cost: a forward pass, two in mixed precision, and a synchronization; not for a timed loop.
        """
        what = f"mean loss of one batch before training, without dropout, {self._amp or 'float32'}"
        with _evaluated(self.model), torch.no_grad():
            full = float(self.model.loss(batch).mean)
            if self._amp is None:
                alone = Figure(None, "1", None, "measured in float32: there is nothing to compare")
                return {"loss": _number(full, what), "loss_float32": _number(full, what), "loss_difference": alone}
            with self._precision():
                own = float(self.model.loss(batch).mean)
        apart = abs(own - full) / abs(full) if full else math.nan
        return {
            "loss": _number(own, what),
            "loss_float32": _number(full, "the same batch and weights in float32"),
            "loss_difference": _number(apart, "|loss - float32| / |float32|"),
        }

    def _precision(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._amp is None else torch.autocast(self._device.type, _DTYPES[self._amp])

    def _inductor(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        """Inductor, counted: every call is a graph that is compiled."""
        from torch._inductor.compile_fx import compile_fx  # not at the top: seconds

        self.graphs_compiled += 1
        return compile_fx(graph, inputs)


@contextmanager
def _evaluated(model: RaggedModel) -> Iterator[None]:
    was = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was)


@contextmanager
def no_silent_eager() -> Iterator[None]:
    """``torch.compile`` that gives up on a function is an error meanwhile: what runs then is no longer compiled.

    Raises:
        CompileError: it did.
    """
    import torch._dynamo.config as dynamo  # not at the top: seconds
    from torch._dynamo.exc import FailOnRecompileLimitHit

    try:
        with dynamo.patch(fail_on_recompile_limit_hit=True):
            yield
    except FailOnRecompileLimitHit as error:
        raise CompileError(
            f"torch.compile gave up after {dynamo.recompile_limit} graphs of one function, and the rest would run "
            "eagerly: measure without --compile."
        ) from error


def _number(value: float, what: str) -> Figure:
    if not math.isfinite(value):
        return Figure(None, "1", None, f"it is {value}: {what}")
    return Figure(value, "1", Origin.MEASURED, what)


def _require_compiler() -> None:
    name = os.environ.get("CXX", "g++")
    if shutil.which(name) is None and shutil.which("clang++") is None:
        raise MissingPackageError(
            f"torch.compile on a CPU needs a C++ compiler, and {name} is not on the PATH: apt-get install g++, set "
            "CXX, or measure without --compile."
        )
