"""An op of the kernels called once, forward, on rows of given lengths: what is counted, and timed on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows, bin_rows_cuda
from labkit.gpu.ops.copies import jagged_to_padded_cuda, padded_to_jagged_cuda
from labkit.gpu.ops.din_attention import attention_pool_cuda
from labkit.gpu.ops.embedding_pool import embedding_pool_cuda
from labkit.gpu.ops.segment_pool import segment_sum_cuda

_FLOAT, _INDEX, _BIN = 4, 8, 4  # bytes of a feature, of an offset or id, of an entry of bins
_ITEMS = 100_000

#: Ops that treat rows of each length in their own way; copies do all rows alike, and bin_rows makes the bins.
SEGMENTED = ("segment_pool", "embedding_pool", "din_attention")

#: What of an op is called.
CALLS = {
    "bin_rows": "bin_rows",
    "jagged_to_padded": "jagged_to_padded, width = P99 of the lengths",
    "padded_to_jagged": "padded_to_jagged, width = P99 of the lengths",
    "segment_pool": "segment_sum",
    "embedding_pool": "embedding_pool, unweighted sum",
    "din_attention": "attention_pool, forward",
}


@dataclass(frozen=True, eq=False)
class Workload:
    """One batch for an op: float32 storage.

    Attributes:
        op: key in the catalog.
        lengths: (B,) int64.
        dim: D.
        config: thresholds of the regimes.
    """

    op: str
    lengths: NDArray[np.int64]
    dim: int
    config: LaunchConfig

    @property
    def events(self) -> int:
        """T."""
        return int(self.lengths.sum())

    @cached_property
    def width(self) -> int:
        """L of the copies: ceil(P99) of the lengths, as ``pad_recent`` has it by default."""
        return max(1, int(np.ceil(np.quantile(self.lengths, 0.99)))) if len(self.lengths) else 1

    @property
    def floor_bytes(self) -> int:
        """What must be read and written at the least: each input and output once. Source: the header of each kernel."""
        rows, events, dim = len(self.lengths), self.events, self.dim
        kept = int(np.minimum(self.lengths, self.width).sum())
        walked = rows * (_INDEX + _BIN)
        match self.op:
            case "bin_rows":
                return rows * (_INDEX + _BIN)
            case "jagged_to_padded":
                return (kept + rows * self.width) * dim * _FLOAT + rows * _INDEX
            case "padded_to_jagged":
                return (kept + events) * dim * _FLOAT + rows * _INDEX
            case "segment_pool":
                return (events + rows) * dim * _FLOAT + walked
            case "embedding_pool":
                return (events + rows) * dim * _FLOAT + events * _INDEX + walked
            case "din_attention":
                return (events * (dim + 1) + rows * (dim + 2)) * _FLOAT + walked
        raise AssertionError(f"no workload for {self.op}")

    def prepared(self, device: str = "cpu") -> Callable[[], object]:
        """The call of the op's CUDA implementation, its inputs made on a device beforehand.

        On ``cpu`` it can only be launched by a stand-in (``labkit.gpu.launch.launching_by``).
        """
        offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(self.lengths)])).to(device)
        giants, thresholds, rows = self.config.giants(self.events), self.config.thresholds, len(self.lengths)
        if self.op == "bin_rows":
            return lambda: bin_rows_cuda(offsets, giants, thresholds)
        if self.op == "jagged_to_padded":
            values = self._random(self.events, device)
            return lambda: jagged_to_padded_cuda(values, offsets, self.width, 0.0)
        if self.op == "padded_to_jagged":
            padded = self._random(rows * self.width, device).view(rows, self.width, self.dim)
            return lambda: padded_to_jagged_cuda(padded, offsets, self.events, 0.0)
        bins = bin_rows(offsets, giants, thresholds)
        if self.op == "segment_pool":
            values = self._random(self.events, device)
            return lambda: segment_sum_cuda(values, offsets, bins, thresholds, False)
        if self.op == "embedding_pool":
            table = self._random(_ITEMS, device)
            ids = torch.randint(_ITEMS, (self.events,), generator=_generator()).to(device)
            return lambda: embedding_pool_cuda(table, ids, None, offsets, bins, thresholds, False)
        if self.op == "din_attention":
            values = self._random(self.events, device)
            scores = torch.randn(self.events, generator=_generator()).to(device)
            return lambda: attention_pool_cuda(scores, values, offsets, bins, thresholds)
        raise AssertionError(f"no workload for {self.op}")

    def _random(self, rows: int, device: str) -> Tensor:
        return torch.randn(rows, self.dim, generator=_generator()).to(device)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def sampled_rows(values: NDArray[np.int64], counts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The lengths at the middles of ``rows`` equal shares of the sequences, shuffled, always in the same way."""
    at = (np.arange(rows) + 0.5) / rows * counts.sum()
    chosen = values[np.searchsorted(np.cumsum(counts), at, side="right")]
    return np.random.default_rng(12).permutation(chosen).astype(np.int64)
