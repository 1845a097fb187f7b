"""Lab: the device, how large the experiments are, and how a call is timed on it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from labkit.bench.graphs import GraphBackend
from labkit.bench.timing import clock_of, time_steps
from labkit.experiments.graphed_step import graph_backend
from labkit.gpu_check.report import Report

#: Calls before the clock starts: kernels loaded, allocator warm, clocks of the GPU up.
_WARM_UP = 3

#: Written before each timed call: more than any cache, and long enough (0.3 ms at 4 TB/s) for the host to queue an op
#: of several launches meanwhile, so that the clock does not count the host.
_FLUSH_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the experiments are; a test makes them small.

    Attributes:
        rows: sequences of the timed batches.
        longest: events of the longest of them.
        dim: D.
        items: rows of the embedding table: 256 MB of float32 at D = 64, more than any cache holds.
        many_rows: a batch of more rows than a grid's y and z have blocks.
        million: events of one very long sequence.
        long_row: events of one in 16 bits: more than float16 can count, 65 504.
        most_elements: T*D of a batch, above the int32 range.
        sequences: of the data set that DIN is trained on.
        token_budget, batch_rows: of its batches.
        strategy_s: seconds of timed steps a strategy; infinity: an epoch, however long it takes.
        sweep_s: seconds of the search for thresholds, an op and a law: four fit the share of their item.
        repeat_s: seconds of repeats of one timed call, after 3 at least.
        most_repeats: of one timed call.
        copy_bytes: of the copy that bandwidth is measured by.
        dims: D of the comparisons with float64.
    """

    rows: int = 100_000
    longest: int = 4096
    dim: int = 64
    items: int = 1_000_000
    many_rows: int = 70_000
    million: int = 2**20
    long_row: int = 70_000
    most_elements: int = 2**31 + 2**20
    sequences: int = 20_000
    token_budget: int = 2**16
    batch_rows: int = 256
    strategy_s: float = 1.5
    sweep_s: float = 2.0
    repeat_s: float = 0.15
    most_repeats: int = 50
    copy_bytes: int = 2**31
    dims: tuple[int, ...] = (1, 3, 12, 64, 128, 132, 512)


@dataclass(eq=False)
class Lab:
    """Where the cases run.

    Attributes:
        device: of all tensors.
        report: where results go; an item may look up what one before it found.
        sizes: of the experiments.
        graphs: what captures graphs on a device; None where there are none.
        ends_s: when the time of the run is over, on ``time.monotonic``.
    """

    device: torch.device
    report: Report
    sizes: Sizes = field(default_factory=Sizes)
    graphs: Callable[[torch.device], GraphBackend | None] = graph_backend
    ends_s: float = field(default=math.inf, init=False)
    _flush: Tensor | None = field(default=None, init=False)

    @property
    def on_gpu(self) -> bool:
        """A CUDA device."""
        return self.device.type == "cuda"

    @property
    def clock(self) -> str:
        """What times are taken by."""
        return "CUDA events" if self.on_gpu else "perf_counter"

    @property
    def left_s(self) -> float:
        """Seconds that are left of the run."""
        return max(0.0, self.ends_s - time.monotonic())

    def timed(self, call: Callable[[], object]) -> dict[str, Any]:
        """Median, quartile distance and number of calls, each with a cold second-level cache.

        The flush is queued before the clock starts, so that the host is ahead when the call's first kernel begins.
        """
        timing = time_steps(
            lambda _: call(), self._flushed(), clock=clock_of(self.device), warm_up=[None] * _WARM_UP, seconds=None
        )
        return {"median_s": timing.median_s, "spread_s": timing.spread_s, "n": timing.n}

    def _flushed(self) -> Iterator[None]:
        start = time.perf_counter()
        for count in range(self.sizes.most_repeats):
            if count >= _WARM_UP and time.perf_counter() - start > self.sizes.repeat_s:
                return
            self._flush_cache()
            yield

    def _flush_cache(self) -> None:
        """Write more than the second-level cache holds."""
        if not self.on_gpu:
            return
        if self._flush is None:
            size = 2 * torch.cuda.get_device_properties(self.device).L2_cache_size
            self._flush = torch.empty(max(size, _FLUSH_BYTES), dtype=torch.int8, device=self.device)
        self._flush.zero_()

    def fit(self, rows: int, bytes_a_row: float, share: float = 0.5) -> int:
        """As many of the rows as this share of the free memory holds, at least 1."""
        if not self.on_gpu:
            return rows
        self.clear()
        free, _ = torch.cuda.mem_get_info(self.device)
        return max(1, min(rows, int(free * share / bytes_a_row)))

    def clear(self) -> None:
        """Give memory back that no tensor uses."""
        if self.on_gpu:
            torch.cuda.empty_cache()

    def synchronize(self) -> None:
        """Wait until the device has done all; what went wrong there is raised here."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def is_alive(self) -> bool:
        """Whether the device still answers: an illegal access ends it for this process."""
        try:
            self.synchronize()
        except RuntimeError:
            return False
        return True
