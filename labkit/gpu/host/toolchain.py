"""The compiler of the CPU runner: where it is, and the flags of each mode."""

from __future__ import annotations

import platform
import shutil
import subprocess
from enum import StrEnum
from functools import cache
from pathlib import Path

from labkit.errors import MissingPackageError
from labkit.gpu.catalog import kernel_folder
from labkit.gpu.host.spacing import GAP_BYTES

_INSTALL = "sudo apt-get install g++ (Debian, Ubuntu), or make setup-tests"


class Mode(StrEnum):
    """How a kernel is built: quick, with every access checked, or under AddressSanitizer and UBSan."""

    FAST = "fast"
    CHECKED = "checked"
    ASAN = "asan"


#: Of kernel and runtime alike. Addresses are fixed (no PIE), so that an address names its source line.
_ALL = ("-fno-pie", "-fno-strict-aliasing", "-fno-omit-frame-pointer")

#: Of kernels. C++17 as NVRTC; no contraction, because x86-64 has no fused multiply-add in its base instructions. Each
#: function and each ``__shared__`` variable stays itself: no folding of equal ones, no linkage across programs.
_KERNEL = (
    *("-std=c++17", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-ipa-icf", "-fno-gnu-unique", "-w"),
)

#: The sanitizer's calls go to our own runtime; blocks stay in the order of the source, which lockstep needs; a copy of
#: a struct is not split into its fields, because on a GPU it is one vector access.
_HOOKS = (
    *("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"),
    *("-fsanitize-coverage=trace-pc", "-fno-reorder-blocks", "-fno-optimize-sibling-calls", "-fno-tree-sra"),
    "-fdata-sections",  # each variable is written out, see spacing.py
)

_MODE_KERNEL: dict[Mode, tuple[str, ...]] = {
    Mode.FAST: ("-O2", "-fwrapv"),
    Mode.CHECKED: ("-O1", "-gdwarf-4", "-fwrapv", *_HOOKS),
    Mode.ASAN: ("-O1", "-gdwarf-4", "-fsanitize=address,undefined"),
}


def runtime_folder() -> Path:
    """Where the C++ sources of the runtime are."""
    return kernel_folder() / "host"


def runtime_sources() -> tuple[Path, ...]:
    """The C++ files of the runtime, in the order of their names."""
    return tuple(sorted(runtime_folder().glob("*.cpp")))


def runtime_headers() -> tuple[Path, ...]:
    """What the kernel and the runtime include, in the order of their paths."""
    return tuple(sorted(runtime_folder().rglob("*.h")))


@cache
def compiler() -> tuple[str, str]:
    """Path and version line of g++.

    Raises:
        MissingPackageError: no g++ or binutils, or a processor for which there is no context switch.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        raise MissingPackageError(
            f"the CPU runner needs Linux on x86-64, got {platform.system()} on {platform.machine()}: run it there, "
            "for example in the container."
        )
    for tool in ("g++", "nm", "c++filt", "addr2line"):
        if shutil.which(tool) is None:
            raise MissingPackageError(f"the CPU runner needs {tool}, which is not on PATH: {_INSTALL}.")
    path = shutil.which("g++") or ""
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return path, version.splitlines()[0]


def kernel_command(mode: Mode, options: tuple[str, ...], source: Path, target: Path) -> list[str]:
    """The command that compiles a kernel's translation unit, to assembly where ``target`` ends with ``.s``."""
    folder = runtime_folder()
    includes = ("-include", str(folder / "cuda_shim.h"))
    flags = (*_KERNEL, *_ALL, *_MODE_KERNEL[mode], *options)
    return [compiler()[0], *flags, *includes, "-S" if target.suffix == ".s" else "-c", str(source), "-o", str(target)]


def assembler_command(source: Path, target: Path) -> list[str]:
    """The command that makes an object of assembly."""
    return [compiler()[0], "-c", str(source), "-o", str(target)]


def runtime_command(mode: Mode, source: Path, target: Path) -> list[str]:
    """The command that compiles one file of the runtime."""
    return [compiler()[0], *_runtime_flags(mode), "-c", str(source), "-o", str(target)]


def link_command(mode: Mode, objects: list[Path], target: Path) -> list[str]:
    """The command that makes the program."""
    sanitizers = ("-fsanitize=address,undefined",) if mode is Mode.ASAN else ()
    return [compiler()[0], "-no-pie", *sanitizers, *map(str, objects), "-lm", "-o", str(target)]


def runtime_key(mode: Mode) -> str:
    """All that decides what the objects of the runtime become."""
    return "\n".join([compiler()[1], *_runtime_flags(mode), *_texts(*runtime_sources(), *runtime_headers())])


def program_key(mode: Mode) -> str:
    """All that decides what a program becomes, apart from its source, names and options."""
    return "\n".join([runtime_key(mode), *_KERNEL, *_ALL, *_MODE_KERNEL[mode], f"gap {GAP_BYTES}"])


def _runtime_flags(mode: Mode) -> tuple[str, ...]:
    return ("-std=c++20", "-O2", *_ALL, *(("-fsanitize=address",) if mode is Mode.ASAN else ()))


def _texts(*paths: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in paths]
