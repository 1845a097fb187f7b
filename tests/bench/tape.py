"""A stand-in for CUDA graphs that runs on a CPU: it records the ops of a step with their tensors, and replays those.

Like the real thing it runs no Python on replay, writes into the tensors of the capture, knows no other, and refuses a
step that reads a value on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

R = TypeVar("R")
HOST_READS = {"aten._local_scalar_dense.default", "aten.nonzero.default", "aten.item.default"}


class Tape(TorchDispatchMode):
    """The ops of one capture, in order; ``recording`` while there is one."""

    recording = False

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[tuple[Any, Any, Any, list[Tensor]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) in HOST_READS:
            raise RuntimeError(f"operation not permitted when stream is capturing: {func}\nmore lines follow")
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        fresh = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        # a view, or the result of an op in place, is there already when the op has run again
        kept = [t if t.untyped_storage().data_ptr() not in inputs else None for t in fresh]
        self.ops.append((func, args, kwargs, kept))  # type: ignore[arg-type]
        return result

    @torch.no_grad()
    def replay(self) -> None:
        for func, args, kwargs, kept in self.ops:
            results = [t for t in tree_leaves(func(*args, **kwargs)) if isinstance(t, Tensor)]
            for place, value in zip(kept, results, strict=True):
                if place is not None:
                    place.copy_(value)


class TapeBackend:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.log: list[str] = []

    def warm_up(self, call: Callable[[], object], times: int) -> None:
        self.log.append(f"warm up {times}")
        for _ in range(times):
            call()

    def capture(self, call: Callable[[], R]) -> tuple[Tape, R]:
        self.log.append("capture")
        tape = Tape()
        Tape.recording = True
        try:
            with tape:
                return tape, call()
        finally:
            Tape.recording = False
