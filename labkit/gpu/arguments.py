"""What a kernel takes, read from its source, and the check of what it is given: a raw launch would check nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labkit.errors import KernelArgumentError, KernelLaunchError

#: What may be passed: a tensor for a pointer, a NumPy scalar for a number, None for a pointer that is not used.
Argument = Tensor | np.generic | None

_TENSORS = {
    "float": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "int": torch.int32,
    "long long": torch.int64,
}
_SCALARS = {"float": "float32", "int": "int32", "long long": "int64", "unsigned long long": "uint64"}

#: Units of bytes: tensors of any dtype, in whole, aligned units.
UNIT_BYTES = {"uint4": 16, "uint2": 8, "unsigned": 4, "unsigned short": 2, "unsigned char": 1}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_EXPRESSION = re.compile(r"(\w+)(?:<(.*)>)?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        name: in the source.
        base: C++ type, of an element where it is a pointer; template parameters are filled in.
        pointer: passed as a pointer.
        constant: what it points to is only read.
    """

    name: str
    base: str
    pointer: bool
    constant: bool


def parameters_of(source: str, expression: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel, as its source declares them.

    Args:
        source: text of the file.
        expression: the kernel's name, with its template arguments: ``"segment_sum<float, 4>"``.

    Raises:
        KernelLaunchError: the source has no such kernel.
    """
    match = _EXPRESSION.fullmatch(expression)
    name, given = (match[1], match[2]) if match else (expression, None)
    declaration = re.search(
        rf"(?:template\s*<([^>]*)>\s*)?__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?{re.escape(name)}\s*\(([^)]*)\)",
        _COMMENT.sub("", source),
    )
    if declaration is None or (declaration[1] is None) != (given is None):
        raise KernelLaunchError(f"the source has no kernel {expression!r}: take one that `labkit kernels` lists.")
    names = [part.split()[-1] for part in (declaration[1] or "").split(",") if part.strip()]
    types = dict(zip(names, (part.strip() for part in (given or "").split(",")), strict=False))
    return tuple(_parameter(part, types) for part in declaration[2].split(","))


def check_arguments(
    expression: str, parameters: Sequence[Parameter], arguments: Sequence[Argument], device: torch.device
) -> None:
    """Refuse what the kernel would misread.

    Raises:
        KernelArgumentError: a wrong number of arguments; a tensor of another dtype or device, not contiguous, or not
            aligned to the units that it is moved in; a number that is not a NumPy scalar of the parameter's type.
    """
    if len(arguments) != len(parameters):
        names = ", ".join(parameter.name for parameter in parameters)
        raise KernelArgumentError(
            f"{expression} takes {len(parameters)} arguments ({names}), got {len(arguments)}: pass all, in this order."
        )
    for parameter, argument in zip(parameters, arguments, strict=True):
        wrong = _pointer_fault(parameter, argument, device) if parameter.pointer else _scalar_fault(parameter, argument)
        if wrong:
            raise KernelArgumentError(f"{parameter.name} of {expression}: {wrong}.")


def _parameter(declared: str, types: dict[str, str]) -> Parameter:
    words = declared.replace("*", " * ").replace("__restrict__", "").split()
    base = " ".join(word for word in words[:-1] if word not in ("const", "*"))
    return Parameter(words[-1], types.get(base, base), "*" in words, "const" in words)


def _pointer_fault(parameter: Parameter, argument: Argument, device: torch.device) -> str | None:
    if argument is None:
        return None
    if not isinstance(argument, Tensor):
        return f"expected a tensor, got {type(argument).__name__}; pass a tensor on {device}"
    if argument.device != device:
        return f"expected a tensor on {device}, got {argument.device}; move it with .to"
    if not argument.is_contiguous():
        return f"expected a contiguous tensor, got strides {argument.stride()}; call .contiguous()"
    unit = UNIT_BYTES.get(parameter.base)
    if unit is not None:
        if argument.data_ptr() % unit or argument.nbytes % unit:
            return f"expected whole, aligned units of {unit} bytes, got {argument.nbytes} bytes; take smaller units"
        return None
    expected = _TENSORS[parameter.base]
    if argument.dtype is not expected:
        return f"expected dtype {expected}, got {argument.dtype}; convert it with .to({expected})"
    return None


def _scalar_fault(parameter: Parameter, argument: Argument) -> str | None:
    expected = _SCALARS[parameter.base]
    if isinstance(argument, np.generic) and argument.dtype.name == expected:
        return None
    got = f"numpy.{argument.dtype}" if isinstance(argument, np.generic) else type(argument).__name__
    return f"expected numpy.{expected}, got {got}; wrap it: numpy.{expected}(...)"
