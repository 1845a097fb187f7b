"""Plan: sizes, name expressions and grids of the segmented kernels for one call, all from shapes the host knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labkit.errors import KernelArgumentError
from labkit.gpu.ops.checks import check_row_count
from labkit.gpu.regimes import HEADER, blocks, group_lanes, pieces, tiles, vector_features

_STORAGE = {torch.float32: "float", torch.float16: "f16", torch.bfloat16: "bf16"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the host must know to launch a segmented kernel.

    Attributes:
        template: the first template arguments, storage type and V: ``"float, 4"``.
        features: V.
        vectors: D / V.
        rows: B.
        events: T.
        giants: room in the bins.
        thresholds: short, medium and long maximum.
    """

    template: str
    features: int
    vectors: int
    rows: int
    events: int
    giants: int
    thresholds: Sequence[int]

    @classmethod
    def of(
        cls,
        bins: Tensor,
        rows: int,
        events: int,
        thresholds: Sequence[int],
        *stored: Tensor,
        places: Tensor | None = None,
    ) -> Plan:
        """The plan for tensors (.., D) of one storage type; all of them decide whether four features go at once.

        Args:
            bins: of ``bin_rows``.
            rows: B.
            events: T.
            thresholds: short, medium and long maximum.
            stored: all tensors (.., D) that the kernel moves in vectors.
            places: (.., D) int32 that it moves in vectors too.

        Raises:
            KernelArgumentError: a dtype that the kernels do not store, or two of them.
            KernelLaunchError: more rows, times tiles, than an int32 can number.
        """
        dtype, dim = stored[0].dtype, stored[0].shape[-1]
        for tensor in stored:
            if tensor.dtype not in _STORAGE or tensor.dtype is not dtype:
                raise KernelArgumentError(
                    f"the kernels store float32, float16 or bfloat16, all tensors the same: got {dtype} and "
                    f"{tensor.dtype}. Convert with .float()."
                )
        moved = stored if places is None else (*stored, places)
        aligned = all(tensor.data_ptr() % (4 * tensor.itemsize) == 0 for tensor in moved)
        features = vector_features(dim, aligned=aligned)
        vectors = dim // features
        check_row_count(rows * tiles(vectors))
        giants = bins.shape[0] - HEADER - 1 - rows
        return cls(f"{_STORAGE[dtype]}, {features}", features, vectors, rows, events, giants, tuple(thresholds))

    def partial(self, floats: int, like: Tensor) -> Tensor:
        """Workspace for the pieces of giants: ``floats`` float32 a piece and vector."""
        size = pieces(self.events, self.giants, self.thresholds[2]) * self.vectors * floats
        return torch.empty(size, dtype=torch.float32, device=like.device)

    def blocks(self, *, tiled: bool) -> int:
        """Blocks of a launch in which each tile is a unit of work, or in which a lane takes all tiles."""
        lanes, parts = group_lanes(self.vectors), tiles(self.vectors) if tiled else 1
        return blocks(self.rows, self.events, self.giants, self.thresholds, lanes=lanes, tiles=parts)

    @property
    def combine_blocks(self) -> int:
        """Blocks of the launch that combines the pieces of giants; 0 where there can be none."""
        return self.giants * tiles(self.vectors)

    @property
    def sizes(self) -> tuple[np.generic, ...]:
        """rows, vectors, giants, piece_events: the last arguments of the walking kernels."""
        return np.int32(self.rows), np.int32(self.vectors), np.int32(self.giants), np.int32(self.thresholds[2])

    @property
    def combine_sizes(self) -> tuple[np.generic, ...]:
        """vectors, giants: the last arguments of the combining kernels."""
        return np.int32(self.vectors), np.int32(self.giants)
