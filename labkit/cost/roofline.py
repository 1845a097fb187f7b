"""Time of each op of a step on a GPU: the slower of arithmetic and bytes, with tiles, waves and cache. NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.cost.basis import evaluate
from labkit.cost.devices import Gpu, Precision
from labkit.cost.overheads import Overheads
from labkit.cost.shapes import Shapes
from labkit.cost.step_cost import StepCost

_F = NDArray[np.float64]

#: Tiles of the result that a matrix product is cut into, one a thread block: rows, columns, and the share of the peak
#: that a multiprocessor reaches in it. A small tile reads more for each operation: with t_m + t_n elements loaded for
#: t_m t_n multiply-adds the share is taken as t_m t_n / (t_m + t_n) / 64, at most 1.
#: Source: NVIDIA, Matrix Multiplication Background User's Guide, "Tile quantization", "Wave quantization"; the tiles
#: are those of CUTLASS's default kernels, the share is an assumption in the spirit of the guide's figure 3.
_SIDES = ((128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32), (16, 16))
_TILES = np.array([(m, n, min(1.0, m * n / (m + n) / 64)) for m, n in _SIDES])
#: Multiply-adds along k come in steps of so many, and a product is split along k into parts of no fewer than that.
#: Source: CUTLASS, "Efficient GEMM in CUDA", "Parallelized reductions".
_K_STEP, _K_LEAST = 16, 256
#: What the op before has just written is found in the second-level cache, up to this share of it: something else lies
#: there too. Nothing else is: what the forward pass keeps for the backward has long been replaced by then.
_L2_SHARE = 0.5


@dataclass(frozen=True, eq=False, slots=True)
class OpTimes:
    """Device time of each op of a step, (n, d) for n shapes and d ops.

    Attributes:
        arithmetic_s: what its operations take.
        memory_s: what its bytes take.
        kernels: (n, d) kernels that it runs.
    """

    arithmetic_s: _F
    memory_s: _F
    kernels: _F

    @property
    def work_s(self) -> _F:
        """(n, d) the slower of both: reading, computing and writing overlap."""
        return np.maximum(self.arithmetic_s, self.memory_s)


def op_times(cost: StepCost, shapes: Shapes, gpu: Gpu, precision: Precision, overheads: Overheads) -> OpTimes:
    """Device times of all ops at all shapes.

    An elementwise op runs on the FP32 units, a matrix product on those of the precision, cut into tiles and waves.

    Raises:
        GpuError: the GPU lacks the precision.

    Cost: O(n * d); some hundred microseconds for 20 shapes of a DIN step.
    """
    d = cost.device_ops.size
    values = evaluate(cost.device, cost.basis, shapes)
    flops, moved, read, fresh, kernels, sizes = np.split(values, [d, 2 * d, 3 * d, 4 * d, 5 * d], axis=1)
    kernels[:, cost.lookups] -= cost.saved_kernels(shapes)
    bandwidth = gpu.bandwidth_bytes_per_s * overheads.bandwidth_share
    in_cache = np.minimum(np.minimum(fresh, read), _L2_SHARE * gpu.l2_bytes)
    memory = (moved - in_cache * (1 - 1 / overheads.l2_speedup)) / bandwidth
    arithmetic = flops / (gpu.float32_flops * overheads.flops_share)
    if cost.matmuls.size:
        sizes = sizes.reshape(len(shapes), -1, 4)
        peak = gpu.matmul_flops(precision) * overheads.flops_share
        arithmetic[:, cost.matmuls] = np.where(
            (sizes[..., 1] <= 1) | (sizes[..., 2] <= 1),  # matrix times vector: a kernel without tiles
            arithmetic[:, cost.matmuls],
            product_seconds(sizes, gpu.sms, peak),
        )
    return OpTimes(arithmetic, memory, kernels)


def product_seconds(sizes: _F, sms: int, peak_flops: float) -> _F:
    """Seconds of matrix products, (...,), of sizes batch, m, n, k (..., 4).

    The result is cut into tiles, each computed whole even where it sticks out; as many tiles as there are
    multiprocessors run at a time, and the last wave takes as long as a full one. Where there are fewer tiles than
    multiprocessors and k is deep, k is split among them. Of several tiles the fastest is taken, as a library does.

        m = n = 144: 128 x 128 tiles -> 4 of them, 65 536 cells for 20 736; m = 17 with tiles of 16 -> 32
    """
    batch, m, n, k = np.ascontiguousarray(np.moveaxis(sizes, -1, 0))
    tile_m, tile_n, share = _TILES.T.reshape(3, -1, *[1] * batch.ndim)  # tiles first: the long axes stay the inner ones
    tiles = batch * np.ceil(m / tile_m) * np.ceil(n / tile_n)
    parts = np.maximum(1, np.minimum(sms // np.maximum(tiles, 1), np.ceil(k / _K_LEAST)))
    waves = np.ceil(tiles * parts / sms)
    depth = np.ceil(k / parts / _K_STEP) * _K_STEP
    fastest: _F = (waves * depth * (2 * tile_m * tile_n / share)).min(axis=0)
    return fastest * (sms / peak_flops)
