"""CUDA graphs by PyTorch: one side stream, one memory pool for all graphs of a run.

Source: PyTorch, "CUDA semantics", sections "CUDA Graphs" and "Graph memory management".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from labkit.errors import DeviceError

R = TypeVar("R")


class CudaGraphs:
    """Captures and replays on one CUDA device.

    Graphs share a pool: safe as long as they are never replayed at the same time, and what one has returned is read
    before the next is replayed.
    """

    def __init__(self, device: torch.device | str = "cuda") -> None:
        """Make the stream and the pool.

        Raises:
            DeviceError: there is no such CUDA device.
        """
        self._device = torch.device(device)
        if self._device.type != "cuda":
            raise DeviceError(f"CUDA graphs need a CUDA device, got {device}: leave graphs off on other devices.")
        if not torch.cuda.is_available():
            raise DeviceError(
                f"CUDA graphs need a CUDA device, and torch {torch.__version__} finds none: see labkit doctor."
            )
        with torch.cuda.device(self._device):
            self._stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            self._pool: Any = torch.cuda.graph_pool_handle()

    @property
    def device(self) -> torch.device:
        """Where the work runs."""
        return self._device

    def warm_up(self, call: Callable[[], object], times: int) -> None:
        """Run on the side stream that captures: what is allocated for it per stream is then there."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for _ in range(times):
                call()
        current.wait_stream(self._stream)

    def capture(self, call: Callable[[], R]) -> tuple[torch.cuda.CUDAGraph, R]:
        """Record on the side stream, into the shared pool; ``torch.cuda.graph`` synchronizes first.

        Capture mode ``thread_local``: a loader's thread that pins memory meanwhile must not end the capture.
        """
        graph = torch.cuda.CUDAGraph()
        with (
            torch.cuda.device(self._device),
            # a capture that fails leaves the side stream as the current one: this puts the current one back
            torch.cuda.stream(torch.cuda.current_stream(self._device)),
            torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
        ):
            output = call()
        return graph, output
