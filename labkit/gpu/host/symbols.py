"""From addresses of a program to source lines, and from its symbols to the variables a kernel declares."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from labkit.gpu.host.toolchain import runtime_headers, runtime_sources


@dataclass(frozen=True, slots=True)
class Variable:
    """A ``__shared__``, ``__device__`` or ``__constant__`` variable of a kernel's source.

    Attributes:
        name: as in the source.
        address: in the program, which is not moved when it is loaded.
        bytes: its size.
        shared: True for ``__shared__``.
        writable: False where it lies among the constants.
    """

    name: str
    address: int
    bytes: int
    shared: bool
    writable: bool


def variables(program: Path, kernel_object: Path) -> tuple[Variable, ...]:
    """The variables that came from the kernel's own object file, by address.

    A function-local static is what ``__shared__`` becomes; g++ starts the name of such a one with ``_ZZ``.
    """
    own = {name for name, _, _, _ in _data_symbols(kernel_object)}
    found = [entry for entry in _data_symbols(program) if entry[0] in own]
    demangled = _output(["c++filt"], "\n".join(name for name, _, _, _ in found)).splitlines()
    result = []
    for (name, kind, address, size), readable in zip(found, demangled, strict=True):
        if readable.startswith(("host_", "guard variable")) or name.startswith(
            (".", "__odr_asan", "_ZTI", "_ZTS", "_ZTV")
        ):
            continue
        shared = name.startswith("_ZZ") and kind not in "rR"
        result.append(Variable(readable.rpartition("::")[2], address, size, shared, kind not in "rR"))
    return tuple(sorted(result, key=lambda variable: variable.address))


def source_lines(program: Path, addresses: Iterable[int]) -> dict[int, tuple[str, int]]:
    """File name and line of each address, through inlined functions to the first line that is not the runtime's.

    Cost: one run of addr2line.
    """
    wanted = sorted(set(addresses) - {0})
    if not wanted:
        return {}
    own = {path.name for path in (*runtime_headers(), *runtime_sources())}
    listing = _output(["addr2line", "-a", "-i", "-e", str(program)], "\n".join(map(hex, wanted)))
    lines: dict[int, tuple[str, int]] = {}
    address = 0
    for entry in listing.splitlines():
        if entry.startswith("0x"):
            address = int(entry, 16)
            continue
        path, _, number = entry.partition(" (")[0].rpartition(":")
        name = Path(path).name
        if address not in lines and number.isdigit() and int(number) > 0 and name not in own:
            lines[address] = (name, int(number))
    return lines


def _data_symbols(path: Path) -> list[tuple[str, str, int, int]]:
    """Name, nm's letter, address and size of each object that holds data."""
    symbols = []
    for line in _output(["nm", "-S", "--defined-only", str(path)]).splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "bBdDrRuV" and int(fields[1], 16) > 0:
            symbols.append((fields[3], fields[2], int(fields[0], 16), int(fields[1], 16)))
    return symbols


def _output(command: list[str], given: str | None = None) -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
