"""The CPU programs of one source: built once for each mode and storage type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from labkit.gpu.catalog import KERNELS, STORAGE
from labkit.gpu.host.build import build
from labkit.gpu.host.program import Program
from labkit.gpu.host.toolchain import Mode


def storage_of(expression: str) -> str:
    """The storage type, "" for kernels that have none (they move units of bytes): those of one are built together."""
    first = expression.partition("<")[2].partition(",")[0]
    return first if first in STORAGE else ""


class Programs:
    """Builds what is asked for; threads may ask at once.

    Args:
        op: key in the catalog.
        path: of the source.
        source: its text, where it is not the file's.
        cache: folder of finished programs; None: the usual one.
    """

    def __init__(self, op: str, path: Path, source: str | None = None, cache: Path | None = None) -> None:
        self._op, self._path, self._source, self._cache = op, path, source, cache
        self._built: dict[tuple[Mode, str], Program] = {}
        self._locks: dict[tuple[Mode, str], Lock] = {}
        self._lock = Lock()

    def of(self, mode: Mode, expression: str) -> Program:
        """The program that has a kernel.

        Raises:
            KernelCompileError: g++ refuses the source.
            MissingPackageError: no g++ here.
        """
        key = (mode, storage_of(expression))
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._built:
                names = together(KERNELS[self._op].name_expressions, key[1])
                self._built[key] = build(self._path, names, mode=mode, source=self._source, cache=self._cache)
            return self._built[key]


def together(expressions: Sequence[str], storage: str) -> tuple[str, ...]:
    """Those of one storage type."""
    return tuple(name for name in expressions if storage_of(name) == storage)
