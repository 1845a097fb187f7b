"""Compiles CUDA C with CuPy's NVRTC binding and CuPy's own options, on machines without a GPU too.

``cupy.RawModule.compile`` asks the driver for the device first and fails where there is none; the compiler below it
does not need one. What is proved here about a kernel (registers, spills, PTX) holds for the binary that ``RawModule``
loads, because the options are the same.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from labkit.errors import KernelCompileError, MissingPackageError

#: Compute capabilities that a kernel is compiled for: Turing, Ampere (A100), Hopper, Blackwell (B200, RTX 50).
ARCHES = (75, 80, 90, 100, 120)

#: Added to CuPy's options: what ptxas used, and source lines in the PTX. Neither changes the code that is generated.
_REPORTING = ("--ptxas-options=-v", "-lineinfo")

_INSTALL = "pip install 'labkit[gpu]'"
_LOADING = threading.Lock()

_NEEDS_FP16 = re.compile(r"^\s*#\s*include\s*[<\"]cuda_(?:fp16|bf16)\.h[>\"]", re.MULTILINE)
_FIRST_ERROR = re.compile(r"^(?P<file>[^\n(]*)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What NVRTC made of one source for one architecture.

    Attributes:
        arch: compute capability without the dot, 90 for 9.0.
        cubin: the binary of the device, an ELF file.
        ptx: the same program as text, with ``.loc`` lines of the source.
        names: name expression to mangled name; a kernel that is ``extern "C"`` and not asked for is not here.
        log: NVRTC's log with the report of ptxas.
    """

    arch: int
    cubin: bytes
    ptx: str
    names: dict[str, str]
    log: str


def _binding() -> Any:
    """CuPy's NVRTC binding, once it has been seen to find the library.

    One thread at a time: while CuPy still looks for the library, NVRTC does not find its built-ins.

    Raises:
        MissingPackageError: CuPy or NVRTC is not installed.
    """
    with _LOADING:
        return _found_binding()


@cache
def _found_binding() -> Any:
    try:
        from cupy.cuda import nvrtc
    except ImportError as error:
        raise MissingPackageError(
            f"kernels are compiled through CuPy, which cannot be imported ({error}): {_INSTALL}"
        ) from error
    try:
        nvrtc.getVersion()
    except Exception as error:  # the loader of CuPy raises classes of its own, of packages that may be absent
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingPackageError(
            f"kernels are compiled by NVRTC, whose library is not found ({first}): {_INSTALL}"
        ) from error
    return nvrtc


def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the NVRTC that compiles.

    Raises:
        MissingPackageError: CuPy or NVRTC is not installed.
    """
    major, minor = _binding().getVersion()
    return int(major), int(minor)


def cupy_options(options: Sequence[str], arch: int) -> tuple[str, ...]:
    """Everything that ``cupy.RawModule(options=options)`` hands to NVRTC on a device of this architecture.

    Among it ``-ftz=true``: float32 arithmetic flushes subnormal numbers to zero.

    Raises:
        MissingPackageError: CuPy, NVRTC or CUDA's headers are not installed.

    Source: ``cupy/cuda/compiler.py``, ``_compile_with_cache_cuda`` and ``_compile_using_nvrtc``, CuPy 14.
    """
    _binding()  # the error that names the missing package comes first
    from cupy._core import core

    try:
        assembled = core.assemble_cupy_compiler_options(tuple(options))
    except RuntimeError as error:  # CuPy found neither a CUDA toolkit nor the wheel with its headers
        raise MissingPackageError(f"kernels are compiled with CUDA's headers ({error}): {_INSTALL}") from error
    return (*assembled, "-ftz=true", f"-arch=sm_{arch}", "--device-as-default-execution-space")


def fp16_headers() -> Path | None:
    """The folder with ``cuda_fp16.h`` and ``cuda_bf16.h`` of the wheel nvidia-cuda-runtime, or None where it is absent.

    CuPy finds the headers of a whole CUDA toolkit by itself, not those of the wheel that PyTorch's CUDA builds bring.
    """
    library = Path(_binding().__file__).parents[3] / "nvidia"
    folders = sorted(library.glob("cu*/include/cuda_fp16.h")) + sorted(library.glob("cuda_runtime/include/cuda_fp16.h"))
    return folders[0].parent if folders else None


def compile_source(
    source: str,
    name: str,
    *,
    arch: int = 90,
    name_expressions: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Compiled:
    """Compile CUDA C to a binary and to PTX.

    Args:
        source: the text.
        name: how messages and ``.loc`` call it, ``segment_pool.cu``.
        arch: compute capability without the dot.
        name_expressions: templates to instantiate, ``"pool<float, 4>"``; also finds the mangled name of any kernel.
        options: as for ``cupy.RawModule``, mostly ``-DNAME=value``.

    Raises:
        KernelCompileError: the source is wrong; the message has the first error, ``.log`` all of them, each with its
            line in ``source``.
        MissingPackageError: CuPy, NVRTC or CUDA's headers are not installed.

    Cost: 0.1 to 0.5 s of one core.
    """
    nvrtc = _binding()
    headers: tuple[str, ...] = ()
    if _NEEDS_FP16.search(source) and (folder := fp16_headers()) is not None:
        headers = (f"-I{folder}",)
    program = nvrtc.createProgram(source, name, [], [])
    try:
        for expression in name_expressions:
            nvrtc.addNameExpression(program, expression)
        try:
            nvrtc.compileProgram(program, [*cupy_options(options, arch), *headers, *_REPORTING])
        except nvrtc.NVRTCError as error:
            raise _complaint(name, arch, nvrtc.getProgramLog(program) or str(error)) from None
        return Compiled(
            arch=arch,
            # CuPy takes the last byte for the end of a string; it belongs to the ELF file
            cubin=nvrtc.getCUBIN(program) + b"\0",
            ptx=nvrtc.getPTX(program).decode(),
            names={expression: nvrtc.getLoweredName(program, expression) for expression in name_expressions},
            log=nvrtc.getProgramLog(program).rstrip("\0 \n"),
        )
    finally:
        nvrtc.destroyProgram(program)


def _complaint(name: str, arch: int, log: str) -> KernelCompileError:
    """One line from NVRTC's log: how many errors, and the first of them with its line."""
    errors = list(_FIRST_ERROR.finditer(log))
    if not errors:
        first = next((line for line in log.splitlines() if line.strip()), "no message")
        return KernelCompileError(f"{name} does not compile for sm_{arch}: {first.strip()}", log)
    first_error = errors[0]
    place = f"{first_error['file']}:{first_error['line']}"
    if (
        first_error["file"] == "__nv_name_map"
    ):  # NVRTC's own file of name expressions; its lines mean nothing to a reader
        place = "a name expression"
    count = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
    hint = ""
    if "cuda_fp16.h" in first_error["text"] or "cuda_bf16.h" in first_error["text"]:
        hint = "; these headers come with: pip install 'nvidia-cuda-runtime==13.0.*'"
    return KernelCompileError(
        f"{name} does not compile for sm_{arch}: {count}, first {place}: {first_error['text']}{hint}", log
    )
