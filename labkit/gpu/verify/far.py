"""Far memory: tensors of many gigabytes of which a few pages are touched, so that indices above 2**32 are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from labkit.gpu.host.buffers import SparseBuffer

#: The event, item or row with which far memory begins to be used: no 32-bit number, signed or not, holds it.
FAR = 2**32 + 5

#: Allocations from here on are far: no trial fills as much.
_FAR_BYTES = 2**31

_NUMPY = {
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.bfloat16: np.uint16,
    torch.int64: np.int64,
    torch.uint8: np.uint8,
}

#: Address to memory, of the far tensors that are alive. Each thread takes its own away.
_ALIVE: dict[int, SparseBuffer] = {}


_LAST_BLOCKS: ContextVar[int | None] = ContextVar("last_blocks", default=None)


def first_block(blocks: int) -> int:
    """The block with which a launch of so many begins."""
    last = _LAST_BLOCKS.get()
    return 0 if last is None else max(0, blocks - last)


def far_memory(tensor: Tensor) -> SparseBuffer | None:
    """The memory behind a far tensor, to be shared and not copied; None for all others."""
    return _ALIVE.get(tensor.data_ptr())


class FarTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types for it
    """While it is entered, what torch allocates above 2 GiB is far memory: zeros, but for what is written."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """``new_empty``, ``empty`` and ``empty_like`` of much memory; all else as it is."""
        given = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "empty":
            shape, dtype = tuple(args[0]), given.get("dtype") or torch.float32
        elif name == "new_empty":
            shape, dtype = tuple(args[1]), given.get("dtype") or args[0].dtype
        elif name == "empty_like":
            shape, dtype = tuple(args[0].shape), given.get("dtype") or args[0].dtype
        else:
            return func(*args, **given)
        if int(np.prod(shape, dtype=np.int64)) * dtype.itemsize < _FAR_BYTES:
            return func(*args, **given)
        return self.zeros(shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A far tensor."""
        buffer = SparseBuffer(shape, _NUMPY[dtype])
        tensor = torch.from_numpy(buffer.array)
        tensor = tensor.view(dtype) if tensor.dtype is not dtype else tensor
        _ALIVE[tensor.data_ptr()] = buffer
        self._own.append(tensor.data_ptr())
        return tensor

    def ending_with(self, part: Tensor, before: int = FAR) -> Tensor:
        """A far tensor, zeros but for its end: ``part`` from entry ``before`` on."""
        far = self.zeros((before + part.shape[0], *part.shape[1:]), part.dtype)
        far[before:] = part
        return far

    def close(self) -> None:
        """Give the memory back."""
        for address in self._own:
            _ALIVE.pop(address).close()


def end_of(
    call: Callable[[FarTensors], Tensor | tuple[Tensor, ...]], *, last_blocks: int | None = None
) -> tuple[Tensor, ...]:
    """What a call leaves, of far tensors what lies from ``FAR`` on; the far memory is given back.

    Args:
        call: of an op.
        last_blocks: run only so many of a grid that would take minutes, those at its end; None: all.
    """
    far, before = FarTensors(), _LAST_BLOCKS.set(last_blocks)
    try:
        with far:
            found = call(far)
        parts = found if isinstance(found, tuple) else (found,)
        return tuple(part[FAR:].clone() if far_memory(part) else part for part in parts)
    finally:
        _LAST_BLOCKS.reset(before)
        far.close()
