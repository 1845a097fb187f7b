"""full_float32: float32 means 24 bits of mantissa while a step is measured, on every GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from labkit.errors import DeviceError


@contextmanager
def full_float32() -> Iterator[None]:
    """Keep TF32 (10 bits) out of cuDNN and cuBLAS meanwhile; the switches of the process are put back.

    torch lets cuDNN use it from Ampere on unless told otherwise, and cuBLAS not: a GRU called float32 would be another
    arithmetic than an attention called float32.

    Raises:
        DeviceError: the process has set the switches through both of torch's interfaces, which torch cannot read.

    Source: PyTorch, "CUDA semantics", TensorFloat-32.
    """
    cudnn, cublas = torch.backends.cudnn, torch.backends.cuda.matmul
    try:
        before = cudnn.allow_tf32, cublas.allow_tf32
    except RuntimeError:
        raise DeviceError(
            "whether TF32 is allowed cannot be read: this process set it through allow_tf32 and fp32_precision; "
            "use one of them."
        ) from None
    cudnn.allow_tf32 = cublas.allow_tf32 = False
    try:
        yield
    finally:
        cudnn.allow_tf32, cublas.allow_tf32 = before
