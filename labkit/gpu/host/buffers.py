"""Memory that this process and a kernel's program share: anonymous files, mapped by both."""

from __future__ import annotations

import mmap
import os
from copy import copy
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from labkit.errors import KernelArgumentError


def poisoned(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """A new array full of 0xFF bytes: NaN as a float, -1 as an integer. What a kernel forgets to write shows."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = 0xFF
    return array


class SharedMemory:
    """An anonymous file of a given size, mapped here; pages take no memory until they are written.

    Args:
        size_bytes: at least 1 is mapped, also where 0 is asked for.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.file = os.memfd_create("labkit-kernel-buffer")
        whole_pages = -(-max(size_bytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(self.file, whole_pages)
        self._map = mmap.mmap(self.file, whole_pages)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A view of the memory from its start."""
        return np.ndarray(shape, dtype, buffer=self._map)

    def release(self) -> None:
        """Closes the file; the mapping goes with the last array that looks into it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


class SparseBuffer:
    """An array that may be larger than memory, as long as little of it is touched: indices above 2**31 on the CPU.

    It starts as zeros, and a launch reads and writes it in place, without a copy. Use it in a ``with`` block.

    Args:
        shape: of ``array``.
        dtype: of ``array``.

    Raises:
        KernelArgumentError: a dtype that holds objects.

    Cost: address space for all of it, memory for the pages of 4 KiB that are touched.
    """

    def __init__(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> None:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise KernelArgumentError(f"a sparse buffer holds numbers, got dtype {kind}: pass a numeric dtype.")
        elements = 1
        for size in sizes:
            elements *= size
        self.memory = SharedMemory(elements * kind.itemsize)
        self.array: NDArray[Any] = self.memory.array(sizes, kind)

    def viewed(self, dtype: DTypeLike) -> Self:
        """The same memory as flat numbers of another size; whoever made it first closes it."""
        other = copy(self)
        other.array = self.array.reshape(-1).view(dtype)
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the file back; ``array`` stays readable while it is held."""
        self.memory.release()
