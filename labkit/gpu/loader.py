"""The loader of kernels: one CuPy module for each text of a source file and device; an edited file is loaded anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from labkit.errors import KernelLaunchError, MissingPackageError
from labkit.gpu.arguments import Parameter, parameters_of
from labkit.gpu.catalog import KERNELS, KernelSource
from labkit.gpu.sources import kernel_files, kernel_text

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


class _Text(NamedTuple):
    """A source as it was read, and by what a change of its files is seen."""

    files: tuple[Path, ...]
    stamp: tuple[tuple[int, int], ...]
    text: str


_texts: dict[KernelSource, _Text] = {}


def kernel(op: str, expression: str, device: int) -> Kernel:
    """A kernel of the catalog, compiled for a CUDA device.

    Args:
        op: key in ``KERNELS``.
        expression: one of its name expressions.
        device: index of the CUDA device.

    Raises:
        KernelLaunchError: an op or name expression that the catalog does not have.
        MissingPackageError: CuPy is not installed.
        DataFileError: the source cannot be read.

    Cost: the first kernel of a file, and of each edit of it, compiles the whole file, in seconds, or loads it from
        CuPy's cache on disk; later calls are a lookup, and a look at the times of two files.
    """
    source = KERNELS.get(op)
    if source is None or expression not in source.name_expressions:
        known = ", ".join(KERNELS) if source is None else ", ".join(source.name_expressions)
        raise KernelLaunchError(
            f"no kernel {expression!r} of op {op!r}: expected one of {known}. Add it to the catalog."
        )
    return _kernel(source, _text(source), expression, device)


def _text(source: KernelSource) -> str:
    """The text of a source, read again once one of its files has another time or size."""
    known = _texts.get(source)
    if known is None or known.stamp != _stamp(known.files):
        files = kernel_files(source.path)
        known = _texts[source] = _Text(files, _stamp(files), kernel_text(source.path))
    return known.text


def _stamp(files: tuple[Path, ...]) -> tuple[tuple[int, int], ...]:
    try:
        found = [file.stat() for file in files]
    except OSError:  # reading says which
        return ()
    return tuple((status.st_mtime_ns, status.st_size) for status in found)


@cache
def _kernel(source: KernelSource, text: str, expression: str, device: int) -> Kernel:
    return Kernel(_function(source, text, expression, device), parameters_of(text, expression))


def _function(source: KernelSource, text: str, expression: str, device: int) -> Any:
    try:
        import cupy
    except ImportError as error:
        raise MissingPackageError(
            f"the kernels run through CuPy, which cannot be imported ({error}): pip install 'labkit[gpu]'"
        ) from error
    with cupy.cuda.Device(device) as current:
        return _module(source, text, OPTIONS, device, current.compute_capability).get_function(expression)


@cache
def _module(source: KernelSource, text: str, options: tuple[str, ...], device: int, arch: str) -> Any:
    """CuPy's module of a text on the current device."""
    import cupy

    return cupy.RawModule(code=text, backend="nvrtc", options=options, name_expressions=source.name_expressions)
