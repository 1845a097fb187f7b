"""Global memory of a launch and the shared and local memory of its blocks: every access is checked.

Buffers lie 256-byte aligned with guard zones between them, as ``cudaMalloc`` would place them, so that an access one
element behind a buffer is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import KernelArgumentError
from labkit.gpu.ptx.fault import Fault

Array = NDArray[Any]

_ALIGNMENT = 256
_POISON = 0xFF  # NaN as float16, float32 and float64, -1 as an integer

#: Where generic addresses of the other spaces begin; global memory lies below.
SHARED_WINDOW = 1 << 48
LOCAL_WINDOW = 1 << 49


def _first(mask: Array) -> int:
    return int(np.flatnonzero(mask)[0])


class Space:
    """A stretch of bytes that is read and written in typed, aligned accesses of many lanes."""

    name: str

    def __init__(self, size: int) -> None:
        self.bytes = np.full(-(-size // 16) * 16, _POISON, np.uint8)
        self._views: dict[Any, Array] = {}

    def view(self, dtype: Any) -> Array:
        """All bytes as elements of a type."""
        if dtype not in self._views:
            self._views[dtype] = self.bytes.view(dtype)
        return self._views[dtype]

    def locate(self, address: Array, size: int, threads: Array | slice, *, load: bool, store: bool) -> Array:
        """Addresses to indices of bytes, after the checks.

        Raises:
            Fault: misaligned, outside, read before it was written, or read-only.
        """
        raise NotImplementedError

    def _aligned(self, address: Array, size: int) -> None:
        wrong = address & (size - 1)
        if wrong.any():
            lane = _first(wrong)
            raise Fault(
                f"misaligned {self.name} access of {size} bytes at an address that is {int(wrong[lane])} bytes off",
                lane,
            )


class GlobalMemory(Space):
    """The arguments of a launch that are arrays, and the variables of the module.

    Attributes:
        variables: name to address.
    """

    name = "global"

    def __init__(self, arrays: Sequence[tuple[str, Array]], variables: Mapping[str, Array]) -> None:
        self.arrays = [*arrays, *variables.items()]
        self.starts, end = [], _ALIGNMENT
        for _, array in self.arrays:
            self.starts.append(end)
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        self.variables = dict(zip(variables, self.starts[len(arrays) :], strict=True))
        super().__init__(end)
        self.owner = np.zeros(len(self.bytes), np.uint8)  # 0: guard; i + 1: array i
        for i, (start, (_, array)) in enumerate(zip(self.starts, self.arrays, strict=True)):
            self.bytes[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
            self.owner[start : start + array.nbytes] = i + 1
        self.read_only = np.array([False, *(not array.flags.writeable for _, array in self.arrays)])

    def store_back(self) -> None:
        """Copy what was written into the arrays of the caller."""
        for start, (_, array) in zip(self.starts, self.arrays, strict=True):
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = self.bytes[start : start + array.nbytes]

    def locate(self, address: Array, size: int, threads: Array | slice, *, load: bool, store: bool) -> Array:
        """Addresses are indices already; each access must lie in one array."""
        inside = (address >= 0) & (address <= len(self.bytes) - size)
        if not inside.all():
            lane = _first(~inside)
            raise Fault(f"global access of {size} bytes out of bounds: {self._nearest(int(address[lane]))}", lane)
        self._aligned(address, size)
        owner = self.owner[address]
        whole = owner != 0
        if size > 1:
            whole &= self.owner[address + (size - 1)] == owner
        if not whole.all():
            lane = _first(~whole)
            raise Fault(f"global access of {size} bytes out of bounds: {self._nearest(int(address[lane]))}", lane)
        if store and self.read_only.any() and (wrong := self.read_only[owner]).any():
            lane = _first(wrong)
            raise Fault(f"store into the read-only {self.arrays[int(owner[lane]) - 1][0]}", lane)
        return address

    def _nearest(self, address: int) -> str:
        """Where an address is relative to the array that it misses by least."""
        if not self.arrays:
            return "no array was passed"

        def distance(i: int) -> int:
            start, end = self.starts[i], self.starts[i] + self.arrays[i][1].nbytes
            return max(start - address, address - end + 1, 0)

        nearest = min(range(len(self.arrays)), key=distance)
        name, array = self.arrays[nearest]
        offset = address - self.starts[nearest]
        if not -(1 << 32) < offset - array.nbytes < 1 << 32:
            return f"address {address & (1 << 64) - 1:#x}, in no argument"
        return f"byte {offset} of {name}, which has {array.nbytes}"


class SharedMemory(Space):
    """The shared memory of the blocks that run together, each with its own stretch."""

    name = "shared"

    def __init__(self, blocks: int, size: int, block_of: Array) -> None:
        self.size = size
        self.stride = -(-size // 16) * 16
        super().__init__(max(blocks * self.stride, 16))
        self.base = block_of * self.stride
        self.written = np.zeros(len(self.bytes), np.bool_)

    def locate(self, address: Array, size: int, threads: Array | slice, *, load: bool, store: bool) -> Array:
        """Offsets within a block to indices; a load must find what a store has left."""
        inside = (address >= 0) & (address <= self.size - size)
        if not inside.all():
            lane = _first(~inside)
            raise Fault(
                f"shared access of {size} bytes out of bounds: byte {int(address[lane])} of {self.size} of the block",
                lane,
            )
        self._aligned(address, size)
        place: Array = address + self.base[threads]
        if load and not (known := self.written[place] & self.written[place + (size - 1)]).all():
            lane = _first(~known)
            raise Fault(f"shared memory read before anything was written: byte {int(address[lane])} of the block", lane)
        if store:
            for byte in range(size):
                self.written[place + byte] = True
        return place


class LocalMemory(Space):
    """What a thread keeps outside registers; each thread has its own stretch."""

    name = "local"

    def __init__(self, threads: int, size: int) -> None:
        self.size = size
        self.stride = -(-size // 16) * 16
        super().__init__(max(threads * self.stride, 16))
        self.base = np.arange(threads, dtype=np.int64) * self.stride

    def locate(self, address: Array, size: int, threads: Array | slice, *, load: bool, store: bool) -> Array:
        """Offsets within a thread to indices."""
        inside = (address >= 0) & (address <= self.size - size)
        if not inside.all():
            lane = _first(~inside)
            raise Fault(f"local access of {size} bytes out of bounds: byte {int(address[lane])} of {self.size}", lane)
        self._aligned(address, size)
        place: Array = address + self.base[threads]
        return place


def arguments_as_bytes(
    params: dict[str, tuple[str, int]], args: Sequence[object], variables: Mapping[str, Array]
) -> tuple[dict[str, Array], GlobalMemory]:
    """Lay out arrays in global memory, and write addresses and scalars into the parameters of a kernel.

    Raises:
        KernelArgumentError: too many or too few arguments, a size that is not the parameter's, an array that is not
            contiguous.
    """
    if len(args) != len(params):
        raise KernelArgumentError(f"the kernel takes {len(params)} arguments, got {len(args)}")
    arrays: list[tuple[str, Array]] = []
    index_of: dict[int, int] = {}  # argument to the array that it points to; the same array twice is one buffer
    for i, arg in enumerate(args):
        if not isinstance(arg, np.ndarray) or arg.ndim == 0:
            continue
        if not arg.flags.c_contiguous:
            raise KernelArgumentError(
                f"argument {i} must be contiguous, got strides {arg.strides}; use np.ascontiguousarray"
            )
        same = [k for k, j in index_of.items() if args[k] is arg and j is not None]
        if same:
            index_of[i] = index_of[same[0]]
            continue
        if any(np.may_share_memory(arg, other) for _, other in arrays):
            raise KernelArgumentError(f"argument {i} overlaps another one; pass the same array object, or copies")
        index_of[i] = len(arrays)
        arrays.append((f"argument {i}", arg))
    memory = GlobalMemory(arrays, variables)
    block: dict[str, Array] = {}
    for i, (arg, (name, (kind, size))) in enumerate(zip(args, params.items(), strict=True)):
        if i in index_of:
            value = np.uint64(memory.starts[index_of[i]]).tobytes()
        elif arg is None:
            value = np.uint64(0).tobytes()
        elif isinstance(arg, np.generic):
            value = arg.tobytes()
            if (arg.dtype.kind == "f") != (kind in ("f32", "f64")):
                raise KernelArgumentError(f"argument {i} is a .{kind} of the kernel, got {arg.dtype}")
        elif isinstance(arg, bytes):
            value = arg
        else:
            raise KernelArgumentError(
                f"argument {i} must be an array, a NumPy scalar, bytes or None, got {type(arg).__name__}"
            )
        if len(value) != size:
            raise KernelArgumentError(f"argument {i} has {len(value)} bytes, the kernel expects {size} (.{kind})")
        block[name] = np.frombuffer(value, np.uint8)
    return block, memory
