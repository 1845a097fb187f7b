"""The one place from which a kernel is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.errors import KernelLaunchError
from labkit.gpu.arguments import Argument, check_arguments
from labkit.gpu.loader import kernel
from labkit.gpu.regimes import BLOCK

#: Blocks along x. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; along y and z
#: it would be 65 535, which is why everything lies along x.
MAX_BLOCKS = 2**31 - 1

Launcher = Callable[[str, str, int, Sequence[Argument], torch.device], None]
_stand_in: ContextVar[Launcher | None] = ContextVar("stand_in", default=None)


@contextmanager
def launching_by(launcher: Launcher | None) -> Iterator[None]:
    """In this context ``launch`` calls ``launcher``: so kernels are verified where there is no device. None: itself."""
    token = _stand_in.set(launcher)
    try:
        yield
    finally:
        _stand_in.reset(token)


def launch(op: str, expression: str, blocks: int, arguments: Sequence[Argument], device: torch.device) -> None:
    """Launch a kernel on torch's current stream of a device; with no blocks nothing is launched.

    Neither allocates nor waits, so that it can be captured in a CUDA graph once the kernel has been loaded.

    Args:
        op: key in the catalog.
        expression: the kernel.
        blocks: along x, of 256 threads.
        arguments: a tensor for each pointer, a NumPy scalar of exactly its type for each number.
        device: of all tensors.

    Raises:
        KernelArgumentError: an argument that the kernel would misread; nothing has been launched.
        KernelLaunchError: too many blocks, a device that is no CUDA device, or a launch that the driver refuses.
        MissingPackageError: CuPy is not installed.

    Cost: some 10 us of the host.
    """
    if (launcher := _stand_in.get()) is not None:
        launcher(op, expression, blocks, arguments, device)
        return
    if device.type != "cuda":
        raise KernelLaunchError(
            f"{expression} runs on a CUDA device, got tensors on {device}: move them, or use the op."
        )
    if not 0 <= blocks <= MAX_BLOCKS:
        raise KernelLaunchError(f"{expression} takes 0 to {MAX_BLOCKS} blocks, got {blocks}: split the batch.")
    if blocks == 0:
        return
    index = torch.cuda.current_device() if device.index is None else device.index
    function, parameters = kernel(op, expression, index)
    check_arguments(expression, parameters, arguments, device)
    import cupy

    passed = tuple(_passed(argument) for argument in arguments)
    with cupy.cuda.Device(index), _stream(index, torch.cuda.current_stream(index).cuda_stream):
        try:
            function((blocks,), (BLOCK,), passed)
        except cupy.cuda.driver.CUDADriverError as error:
            raise KernelLaunchError(f"{expression} with {blocks} blocks of {BLOCK} threads: {error}.") from error


class _Handle:
    """A stream by its handle, in the words of the CUDA stream protocol; torch keeps the streams that it hands out."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the protocol, and the handle."""
        return 0, self._handle


@lru_cache(maxsize=256)
def _stream(device: int, handle: int) -> Any:
    """CuPy's view of a stream of torch; the handle 0 is the default stream of whichever device is current."""
    import cupy

    return cupy.cuda.Stream.from_external(_Handle(handle))


def _passed(argument: Argument) -> np.generic:
    """Eight bytes of address for a tensor: no copy, no wrapper."""
    if isinstance(argument, np.generic):
        return argument
    return np.uint64(argument.data_ptr() if isinstance(argument, Tensor) else 0)
