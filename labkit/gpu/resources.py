"""What each kernel takes on each architecture: registers, shared memory, stack, spills, and the occupancy that follows.

``kernels/resources.json`` is the committed table; ``python -m labkit.gpu.resources --write`` makes it anew, and without
``--write`` says whether it is up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import KernelCompileError
from labkit.files import write_whole
from labkit.gpu.catalog import KERNELS, KernelSource, kernel_folder
from labkit.gpu.nvrtc import ARCHES, Compiled, compile_source, nvrtc_version
from labkit.gpu.occupancy import occupancy
from labkit.gpu.sources import kernel_text

_KERNEL = re.compile(
    r"Compiling entry function '([^']+)' for 'sm_\d+'\n(.*?)(?=\nptxas info    : Compiling entry|\Z)", re.S
)
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_MAX_THREADS = re.compile(
    r"\.entry\s+([\w$]+)\s*\([^)]*\)\s*\.(?:max|req)ntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?"
)
#: Threads of a block where no ``__launch_bounds__`` says.
_USUAL_THREADS = 256


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes on one architecture.

    Attributes:
        registers: of a thread.
        stack_bytes: local memory of a thread: arrays with computed indices, and spills.
        spill_bytes: stored and loaded because registers ran out.
        shared_bytes: static, of a block.
        threads: of a block.
        occupancy: share of a multiprocessor's warps that fit.
        limit: what keeps more from fitting.
    """

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int
    threads: int
    occupancy: float
    limit: str

    @property
    def as_json(self) -> dict[str, Any]:
        """Field names to values, in order."""
        return {name: getattr(self, name) for name in self.__slots__}


def resources_of(compiled: Compiled, *, threads: int | None = None) -> dict[str, Resources]:
    """The resources of every kernel by its mangled name, read from the report of ptxas.

    Args:
        compiled: of ``compile_source``.
        threads: of a block; None: what ``__launch_bounds__`` says, or else 256.

    Raises:
        KernelCompileError: a report that is not understood; nothing is guessed.
    """
    bounds = {m[1]: int(m[2]) * int(m[3] or 1) * int(m[4] or 1) for m in _MAX_THREADS.finditer(compiled.ptx)}
    found: dict[str, Resources] = {}
    for name, report in _KERNEL.findall(compiled.log):
        stack, registers, shared = _STACK.search(report), _REGISTERS.search(report), _SHARED.search(report)
        if stack is None or registers is None:
            raise KernelCompileError(f"the report of ptxas on {name} is not understood: {report[:200]!r}", compiled.log)
        used, static = int(registers[1]), int(shared[1]) if shared else 0
        block = threads or bounds.get(name, _USUAL_THREADS)
        fits = occupancy(compiled.arch, block, used, static)
        spills = int(stack[2]) + int(stack[3])
        found[name] = Resources(used, int(stack[1]), spills, static, block, round(fits.share, 4), fits.limit)
    return found


def rows_of(source: KernelSource, arch: int) -> list[dict[str, Any]]:
    """The lines of the table for one file on one architecture.

    Raises:
        KernelCompileError: it does not compile.
        MissingPackageError: CuPy or NVRTC is not installed.

    Cost: compiles the file for each of its option sets.
    """
    rows = []
    for options in source.option_sets:
        compiled = compile_source(
            kernel_text(source.path),
            source.file,
            arch=arch,
            name_expressions=source.name_expressions,
            options=options,
        )
        found = resources_of(compiled)
        for expression in source.name_expressions:
            key = {"op": source.op, "kernel": expression, "options": list(options), "arch": arch}
            rows.append(key | found[compiled.names[expression]].as_json)
    return rows


def table(arches: Iterable[int] = ARCHES) -> list[dict[str, Any]]:
    """All lines: ops and kernels in the order of the catalog, each with its architectures."""
    rows = [row for source in KERNELS.values() for arch in arches for row in rows_of(source, arch)]
    place = {key: i for i, key in enumerate(dict.fromkeys((r["op"], r["kernel"], *r["options"]) for r in rows))}
    return sorted(rows, key=lambda r: (place[r["op"], r["kernel"], *r["options"]], r["arch"]))


def table_path() -> Path:
    """Where the committed table lies."""
    return kernel_folder() / "resources.json"


def as_text(rows: list[dict[str, Any]], compiler: str) -> str:
    """The table as JSON with a line for each row, so that a change shows as a line in a diff."""
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    return f'{{\n  "compiler": {json.dumps(compiler)},\n  "rows": [\n{lines}\n  ]\n}}\n'


def compiler_name() -> str:
    """The compiler that the table was made with."""
    return "NVRTC {}.{}".format(*nvrtc_version())


def complaints(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each kernel that keeps something in local memory."""
    return [
        f"{row['kernel']} {' '.join(row['options'])}".rstrip()
        + f" on sm_{row['arch']}: {row['spill_bytes']} bytes spilled, {row['stack_bytes']} bytes of local memory"
        for row in rows
        if row["spill_bytes"] or row["stack_bytes"]
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write the table, or compare it: 0 when it is up to date and nothing spills, else 1."""
    parser = argparse.ArgumentParser(prog="python -m labkit.gpu.resources", description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="write kernels/resources.json")
    write = parser.parse_args(arguments).write
    rows = table()
    text = as_text(rows, compiler_name())
    if write:
        write_whole(table_path(), text)
    current = table_path().is_file() and table_path().read_text(encoding="utf-8") == text
    said = complaints(rows)
    if not current:
        said.append(f"{table_path()} is out of date; run: python -m labkit.gpu.resources --write")
    sys.stderr.write("".join(f"{line}\n" for line in said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
