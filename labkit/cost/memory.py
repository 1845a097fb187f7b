"""Peak memory of a step at any batch shape, from the storages that its trace saw come and go. NumPy alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.cost.basis import evaluate
from labkit.cost.shapes import Shapes
from labkit.cost.step_cost import StepCost

#: What PyTorch's CUDA caching allocator rounds a block up to.
#: Source: PyTorch, c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize.
CUDA_BLOCK_BYTES = 512


def peak_bytes(cost: StepCost, shapes: Shapes, *, rounding: int = 1) -> NDArray[np.float64]:
    """(n,) most bytes of tensors at one time during a step, parameters, gradients, optimizer state and batch included.

    The size of each storage is a sum of terms, so that the bytes alive at every moment are known at any shape, and the
    peak with them, although which op makes it depends on the shape. What is not in it: scratch memory inside an op, the
    CUDA context, and what an allocator keeps in reserve.

    Args:
        cost: of the model.
        shapes: (n,) batch shapes; exact where they are whole numbers.
        rounding: each storage takes a multiple of so many bytes: 512 on CUDA.

    Cost: O(n * storages * moments), of which a step has a few dozen that may be the peak.
    """
    sizes = evaluate(cost.storages, cost.basis, shapes)
    if rounding != 1:
        sizes = np.ceil(sizes / rounding) * rounding
    most: NDArray[np.float64] = (sizes @ cost.alive).max(axis=1, initial=0.0)
    return most
