"""The kernels there are: source file, op, name expressions and the option sets that are compiled. Data alone.

The loader, the compile tests, the resource table and ``labkit kernels`` all read this one list, so that a kernel that
is not here is neither launched nor believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]

#: Where the sources lie: inside the package once it is installed, at the root of the repository in a checkout.
_FOLDERS = (_PACKAGE / "kernels", _PACKAGE.parent / "kernels")


def kernel_folder() -> Path:
    """The folder of the sources: in the package, or else in the checkout."""
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[-1])


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One ``.cu`` file and everything that is compiled from it.

    Attributes:
        file: name in ``kernels/``.
        op: the op it implements; the key in ``KERNELS``.
        name_expressions: the ``__global__`` functions, templates with their arguments: ``"segment_pool<float, 4>"``.
        option_sets: each a tuple of ``-DNAME=value``; each is compiled by itself, with all name expressions.
    """

    file: str
    op: str
    name_expressions: tuple[str, ...]
    option_sets: tuple[tuple[str, ...], ...] = ((),)

    @property
    def path(self) -> Path:
        """Where the source is on this machine."""
        return kernel_folder() / self.file


#: A copy moves units of the largest of these sizes that divides its rows; 32-bit indices below 2**32 units.
_UNITS = ("uint4", "uint2", "unsigned", "unsigned short", "unsigned char")


def _copies(op: str) -> tuple[str, ...]:
    return tuple(f"{op}<{unit}, {index}>" for unit in _UNITS for index in ("unsigned", "unsigned long long"))


#: Storage types; arithmetic is float32 in all of them (``kernels/rows.cuh``).
STORAGE = ("float", "f16", "bf16")


def _stored(*kernels: str, tail: str = "") -> tuple[str, ...]:
    """Each kernel for each storage type, four features a lane and, where D is not a multiple of 4, one."""
    return tuple(f"{kernel}<{storage}, {v}{tail}>" for kernel in kernels for storage in STORAGE for v in (4, 1))


_SOURCES: tuple[KernelSource, ...] = (
    KernelSource("bin_rows.cu", "bin_rows", ("count_rows", "start_classes", "place_rows", "cut_giants")),
    KernelSource("jagged_to_padded.cu", "jagged_to_padded", _copies("jagged_to_padded")),
    KernelSource("padded_to_jagged.cu", "padded_to_jagged", _copies("padded_to_jagged")),
    KernelSource(
        "segment_pool.cu",
        "segment_pool",
        _stored("segment_sum", "segment_sum_combine", "segment_sum_backward")
        + _stored("segment_max", "segment_max_combine", "segment_max_backward"),
    ),
    KernelSource(
        "embedding_pool.cu",
        "embedding_pool",
        _stored("embedding_pool", tail=", false")
        + _stored("embedding_pool", tail=", true")
        + _stored("embedding_pool_combine", "embedding_pool_weight_grad"),
    ),
    KernelSource(
        "din_attention.cu",
        "din_attention",
        _stored("attention_pool", "attention_pool_combine", "attention_pool_backward"),
    ),
)

KERNELS: dict[str, KernelSource] = {source.op: source for source in _SOURCES}
