"""The loader of kernels: one CuPy module for each source file, kept by the hash of the source, options and device."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, NamedTuple

from labkit.errors import KernelLaunchError, MissingPackageError
from labkit.gpu.arguments import Parameter, parameters_of
from labkit.gpu.catalog import KERNELS, KernelSource
from labkit.gpu.sources import kernel_text

#: CuPy adds its own, among them the architecture of the device.
OPTIONS = ("--std=c++17",)


class Kernel(NamedTuple):
    """A kernel that can be launched.

    Attributes:
        function: CuPy's function object; called with grid, block and arguments.
        parameters: what it takes.
    """

    function: Any
    parameters: tuple[Parameter, ...]


@cache
def kernel(op: str, expression: str, device: int) -> Kernel:
    """A kernel of the catalog, compiled for a CUDA device.

    Args:
        op: key in ``KERNELS``.
        expression: one of its name expressions.
        device: index of the CUDA device.

    Raises:
        KernelLaunchError: an op or name expression that the catalog does not have.
        MissingPackageError: CuPy is not installed.

    Cost: the first kernel of a file compiles the whole file, in seconds, or loads it from CuPy's cache on disk; later
        calls are a lookup.
    """
    source = KERNELS.get(op)
    if source is None or expression not in source.name_expressions:
        known = ", ".join(KERNELS) if source is None else ", ".join(source.name_expressions)
        raise KernelLaunchError(
            f"no kernel {expression!r} of op {op!r}: expected one of {known}. Add it to the catalog."
        )
    text = _text(source)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Kernel(_function(op, digest, expression, device), parameters_of(text, expression))


@cache
def _text(source: KernelSource) -> str:
    return kernel_text(source.path)


def _function(op: str, digest: str, expression: str, device: int) -> Any:
    try:
        import cupy
    except ImportError as error:
        raise MissingPackageError(
            f"the kernels run through CuPy, which cannot be imported ({error}): pip install 'labkit[gpu]'"
        ) from error
    with cupy.cuda.Device(device) as current:
        return _module(op, digest, OPTIONS, device, current.compute_capability).get_function(expression)


@cache
def _module(op: str, digest: str, options: tuple[str, ...], device: int, arch: str) -> Any:
    """CuPy's module of a source on the current device."""
    import cupy

    source = KERNELS[op]
    return cupy.RawModule(
        code=_text(source), backend="nvrtc", options=options, name_expressions=source.name_expressions
    )
