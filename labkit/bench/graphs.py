"""GraphedSteps: a step recorded once for each shape as a CUDA graph, and replayed with one launch.

batch -> key of its shape -> captured?  yes: copy into the static inputs, replay
                                        no, and room for one more: warm up, capture, replay
                                        no: the step itself (a fallback, counted)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from labkit.bench.graph_inputs import copy_into, shape_key, static_copy
from labkit.errors import DeviceError
from labkit.provenance import Figure, Origin

B = TypeVar("B")
R = TypeVar("R")

State = Callable[[], Mapping[Hashable, Tensor]]

#: Before a capture, so that lazy things (cuBLAS workspaces, optimizer state, autotuning) are done outside of it.
#: Source: PyTorch, "CUDA semantics", CUDA Graphs: a few warm-up iterations on a side stream; its examples take 3.
WARM_UPS = 3


#: A strategy with few shapes never comes near; without a limit, one with many would fill the memory.
MOST_GRAPHS = 64


class Graph(Protocol):
    """A recorded step."""

    def replay(self) -> None:
        """Do all its work again on the tensors of the capture; returns before that is done."""


class GraphBackend(Protocol):
    """Streams, capture and the memory pool that all graphs share.

    Attributes:
        device: where the work runs.
    """

    @property
    def device(self) -> torch.device:
        """Where the work runs."""

    def warm_up(self, call: Callable[[], object], times: int) -> None:
        """Do the work, on a stream of its own, after what the current stream has and before what it gets next."""

    def capture(self, call: Callable[[], R]) -> tuple[Graph, R]:
        """Record the work without doing it; the result is what each replay fills anew."""


@dataclass(frozen=True, slots=True)
class _Captured(Generic[B, R]):
    graph: Graph
    inputs: B
    output: R


class GraphedSteps(Generic[B, R]):
    """A step that replays a graph for every shape that it knows.

    The tensors that a call returns are the graph's own: the next call with the same shape writes into them, and as all
    graphs share a pool, they are to be read or copied before any other call.

    Attributes:
        captures: graphs that were recorded.
        replays: calls that one of them served.
        fallbacks: calls that ran the step itself, launch by launch.
        warm_ups: steps run before captures.
    """

    def __init__(
        self,
        step: Callable[[B], R],
        backend: GraphBackend,
        *,
        most: int = MOST_GRAPHS,
        on_first_sight: bool = True,
        warm_ups: int = WARM_UPS,
        state: State | None = None,
    ) -> None:
        """Wrap a step.

        Args:
            step: all the work of a batch, with no synchronization: inference, or a whole training step that begins with
                ``zero_grad(set_to_none=True)``, so that each graph has gradients of its own in the pool. Autocast is
                entered inside of it: casts that are cached outside would be those of the capture for ever.
            backend: CUDA's, or a stand-in.
            most: graphs; shapes beyond it fall back. Each graph holds its inputs, and its share of the pool.
            on_first_sight: capture a shape when it comes; otherwise only those of :meth:`prepare`.
            warm_ups: steps before a capture, at least 1.
            state: names the tensors that a step changes (``training_state``): put back after the warm-up, as if it had
                not been.
        """
        if warm_ups < 1:
            raise ValueError(
                f"a capture needs at least 1 warm-up step, got {warm_ups}: what is lazy would be recorded."
            )
        self._step, self._backend, self._state = step, backend, state
        self._most, self._on_first_sight, self._warm_up_steps = most, on_first_sight, warm_ups
        self._graphs: dict[Hashable, _Captured[B, R]] = {}
        self.captures = self.replays = self.fallbacks = self.warm_ups = 0

    def prepare(self, batches: Iterable[B]) -> None:
        """Capture the shapes of these batches, each before the next one is asked for.

        Args:
            batches: the largest first: the others then fit into its memory.

        Raises:
            DeviceError: the step cannot be captured.
            OutOfMemoryError: memory is out at the batch that was asked for last.
        """
        for batch in batches:
            key = self._key(batch)
            if key not in self._graphs and self._has_room():
                self._capture(key, batch)

    def __call__(self, batch: B) -> R:
        """Do the step.

        Raises:
            DeviceError: its shape is new and the step cannot be captured.
        """
        key = self._key(batch)
        if key not in self._graphs and self._on_first_sight and self._has_room():
            self._capture(key, batch)
        captured = self._graphs.get(key)
        if captured is None:
            self.fallbacks += 1
            return self._step(batch)
        copy_into(captured.inputs, batch, self._backend.device)
        captured.graph.replay()
        self.replays += 1
        return captured.output

    def figures(self) -> dict[str, Figure]:
        """``graph_captures``, ``graph_replays``, ``graph_fallbacks``, ``graph_warm_ups``: counts so far."""
        counts = {
            "graph_captures": self.captures,
            "graph_replays": self.replays,
            "graph_fallbacks": self.fallbacks,
            "graph_warm_ups": self.warm_ups,
        }
        return {name: Figure(count, "1", Origin.MEASURED) for name, count in counts.items()}

    def _key(self, batch: B) -> Hashable:
        return shape_key(batch, self._backend.device)

    def _has_room(self) -> bool:
        return self.captures < self._most

    def _capture(self, key: Hashable, batch: B) -> None:
        inputs = static_copy(batch, self._backend.device)
        before = _on_host(self._state()) if self._state else {}
        self._backend.warm_up(lambda: self._step(inputs), self._warm_up_steps)
        self.warm_ups += self._warm_up_steps
        graph, output = self._recorded(inputs)
        if self._state:
            _put_back(self._state(), before)
        self._graphs[key] = _Captured(graph, inputs, output)
        self.captures += 1

    def _recorded(self, inputs: B) -> tuple[Graph, R]:
        causes: list[RuntimeError] = []

        def step() -> R:
            try:
                return self._step(inputs)
            except RuntimeError as error:
                causes.append(error)  # the end of the capture then raises an error of its own, which says less
                raise

        try:
            return self._backend.capture(step)
        except RuntimeError as error:
            cause = causes[0] if causes else error
            if isinstance(cause, torch.OutOfMemoryError):
                raise cause from None
            first = (str(cause).strip().splitlines() or ["no reason given"])[0]
            raise DeviceError(
                f"this step cannot be captured as a graph: {first}. A step must neither wait for the device (item, "
                "tolist, nonzero, a copy to the host) nor depend on values; leave graphs off for it."
            ) from cause


def _on_host(state: Mapping[Hashable, Tensor]) -> dict[Hashable, Tensor]:
    """Copies in host memory: on the device they would count in its peak, as if the model were there twice."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}


@torch.no_grad()
def _put_back(state: Mapping[Hashable, Tensor], before: Mapping[Hashable, Tensor]) -> None:
    """In place, since the graph knows the addresses. What the warm-up has made starts at zero."""
    for name, tensor in state.items():
        if name in before:
            tensor.copy_(before[name])
        else:
            tensor.zero_()
