"""The rows that are timed: lengths by a law, as many as fit, with their bins and values on the device."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu_check.lab import Lab
from labkit.lengths.histogram import LengthHistogram

#: Zipf's exponent of the lengths.
EXPONENT = 1.2


class Law(StrEnum):
    """How lengths are drawn."""

    ZIPF = "zipf"  # P(n) ~ n**-1.2, n = 1 .. longest
    UNIFORM = "uniform"  # 1 .. longest, all alike


def drawn_lengths(law: Law, rows: int, longest: int, seed: int = 0) -> NDArray[np.int64]:
    """(rows,) lengths, independent, unordered."""
    values = np.arange(1, longest + 1)
    weights = np.ones(longest) if law is Law.UNIFORM else values**-EXPONENT
    law_of = np.cumsum(weights) / weights.sum()
    return np.searchsorted(law_of, np.random.default_rng(seed).random(rows), side="right").clip(max=longest - 1) + 1


class RaggedData:
    """A batch of rows on the device.

    Attributes:
        lengths: (B,) on the host.
        rows: B.
        events: T.
        dim: D.
        offsets: (B+1,) on the device.
        config: thresholds that suit these lengths.
        bins: of ``bin_rows``.
    """

    def __init__(self, lab: Lab, law: Law, rows: int, config: LaunchConfig | None = None) -> None:
        """Draw ``rows`` lengths."""
        self.lengths = drawn_lengths(law, rows, lab.sizes.longest)
        self.rows, self.events, self.dim = rows, int(self.lengths.sum()), lab.sizes.dim
        self._device = lab.device
        self.offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(self.lengths)])).to(lab.device)
        histogram = LengthHistogram.from_lengths(self.lengths)
        self.config = config or LaunchConfig.for_histogram(histogram, self.dim, events=self.events)
        self.bins: Tensor = bin_rows(self.offsets, self.config.giants(self.events), self.config.thresholds)

    @cached_property
    def values(self) -> Tensor:
        """(T, D) standard normal float32."""
        return torch.randn(self.events, self.dim, device=self._device)

    @cached_property
    def scores(self) -> Tensor:
        """(T,) standard normal float32."""
        return torch.randn(self.events, device=self._device)

    @cached_property
    def grad(self) -> Tensor:
        """(B, D) standard normal float32, a gradient of a result a row."""
        return torch.randn(self.rows, self.dim, device=self._device)

    @cached_property
    def longest(self) -> int:
        """Events of the longest row."""
        return int(self.lengths.max())

    @property
    def row_arguments(self) -> tuple[Tensor, Tensor, tuple[int, int, int]]:
        """Offsets, bins and thresholds, as the ops take them."""
        return self.offsets, self.bins, self.config.thresholds
