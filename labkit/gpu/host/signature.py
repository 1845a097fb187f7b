"""Parameters of a kernel as its source declares them, and the checks on what is passed for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import KernelArgumentError
from labkit.gpu.host.buffers import SparseBuffer

#: What may be passed for a parameter: an array, a sparse buffer, a NumPy scalar, None for a null pointer.
Argument = NDArray[Any] | SparseBuffer | np.generic | None

#: g++'s names of C++ types. The kernels' own 16-bit storage types are structs; NumPy has no bfloat16: its bits travel
#: as uint16.
_SCALARS = {
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short int": "int16",
    "short unsigned int": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "long int": "int64",
    "long unsigned int": "uint64",
    "long long int": "int64",
    "long long unsigned int": "uint64",
    "float": "float32",
    "double": "float64",
    "f16": "float16",
    "bf16": "uint16",
}
_VECTORS = {
    f"{name}{lanes}": (element, lanes)
    for name, element in (
        *(("char", "int8"), ("uchar", "uint8"), ("short", "int16"), ("ushort", "uint16"), ("int", "int32")),
        *(("uint", "uint32"), ("longlong", "int64"), ("ulonglong", "uint64"), ("float", "float32")),
        ("double", "float64"),
    )
    for lanes in (2, 4)
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        base: the C++ type, of an element where it is a pointer: ``"float"``, ``"float4"``.
        bytes: size of that type.
        pointer: passed as a pointer.
        constant: what it points to is const.
    """

    base: str
    bytes: int
    pointer: bool
    constant: bool

    @property
    def spelling(self) -> str:
        """As in C++: ``const float*``."""
        return f"{'const ' if self.pointer and self.constant else ''}{self.base}{'*' if self.pointer else ''}"

    @property
    def known(self) -> bool:
        """False for a type that no argument stands for, such as a struct of the source's own."""
        return self.base in _SCALARS or self.base in _VECTORS

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the array or scalar to pass; that of a component where the type is a vector."""
        return np.dtype(_VECTORS[self.base][0] if self.base in _VECTORS else _SCALARS[self.base])

    @property
    def components(self) -> int:
        """1, or 2 and 4 of a vector."""
        return _VECTORS[self.base][1] if self.base in _VECTORS else 1


def check_arguments(kernel: str, parameters: Sequence[Parameter], arguments: Sequence[Argument]) -> None:
    """Refuses what a launch would read wrongly, before the launch.

    Raises:
        KernelArgumentError: a wrong number of arguments, dtype, stride, byte order or alignment; a Python number; a
            read-only array for a pointer that is written; an array that is passed twice and written.
    """
    if len(arguments) != len(parameters):
        spelled = ", ".join(parameter.spelling for parameter in parameters)
        raise KernelArgumentError(
            f"{kernel} takes {len(parameters)} arguments ({spelled}), got {len(arguments)}: pass them all."
        )
    for place, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        wrong = _fault(parameter, argument)
        if wrong:
            raise KernelArgumentError(f"argument {place} of {kernel} is {parameter.spelling}: {wrong}.")
    _check_overlaps(kernel, parameters, arguments)


def array_of(argument: NDArray[Any] | SparseBuffer) -> NDArray[Any]:
    """The array behind an argument for a pointer."""
    return argument.array if isinstance(argument, SparseBuffer) else argument


def _fault(parameter: Parameter, argument: Argument) -> str | None:
    if not parameter.known:
        return "the CPU runner knows no such type; take numbers, CUDA's vectors, or the structs f16 and bf16"
    return _fault_of_pointer(parameter, argument) if parameter.pointer else _fault_of_value(parameter, argument)


def _fault_of_value(parameter: Parameter, argument: Argument) -> str | None:
    if parameter.components > 1:
        return "vectors by value cannot be passed; pass their components"
    wanted = parameter.dtype
    if not isinstance(argument, np.generic) or argument.dtype != wanted:
        got = f"numpy.{argument.dtype}" if isinstance(argument, np.generic) else type(argument).__name__
        return f"expected numpy.{wanted}, got {got}; wrap it, as in np.{wanted}(...)"
    return None


def _fault_of_pointer(parameter: Parameter, argument: Argument) -> str | None:
    if argument is None:
        return None
    if not isinstance(argument, np.ndarray | SparseBuffer):
        return f"expected an array of {parameter.dtype}, got {type(argument).__name__}"
    array = array_of(argument)
    if array.dtype != parameter.dtype or not array.dtype.isnative:
        return f"expected an array of {parameter.dtype}, got {array.dtype}; convert it with .astype"
    if not array.flags.c_contiguous:
        return f"expected a C-contiguous array, got strides {array.strides}; np.ascontiguousarray makes one"
    if array.size % parameter.components:
        return f"expected a multiple of {parameter.components} elements, got {array.size}"
    if not parameter.constant and not array.flags.writeable:
        return "expected an array that can be written, got a read-only one; pass a copy"
    return None


def _check_overlaps(kernel: str, parameters: Sequence[Parameter], arguments: Sequence[Argument]) -> None:
    arrays = [
        (place, parameter, array_of(argument))
        for place, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True))
        if isinstance(argument, np.ndarray | SparseBuffer)
    ]
    for place, parameter, array in arrays:
        for other_place, other, other_array in arrays[:place]:
            written = not (parameter.constant and other.constant)
            if other_place < place and written and np.may_share_memory(array, other_array):
                raise KernelArgumentError(
                    f"arguments {other_place} and {place} of {kernel} share memory, and one of them is written: "
                    "pass arrays that do not overlap."
                )
