"""From addresses of a program to source lines, and from its symbols to the variables a kernel declares."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
        kernel: name expression of the kernel that declares it; None for one of a device function or of the file.
    """

    name: str
    address: int
    bytes: int
    shared: bool
    writable: bool
    kernel: str | None


#: nm's letters of objects that hold data.
_DATA = "bBdDrRuV"


class _Symbol(NamedTuple):
    name: str
    kind: str
    address: int
    bytes: int


def variables(program: Path, kernel_object: Path, kernels: Mapping[str, int]) -> tuple[Variable, ...]:
    """The variables that came from the kernel's own object file, by address.

    A function-local static is what ``__shared__`` becomes; g++ starts the name of such a one with ``_ZZ`` and the
    mangled name of its function.

    Args:
        program: the executable.
        kernel_object: what the kernel's source became.
        kernels: name expression to the address of its function.
    """
    symbols = _symbols(program)
    owners = {
        _prefix_of_locals(entry.name): name for name, at in kernels.items() for entry in symbols if entry.address == at
    }
    own = {entry.name for entry in _symbols(kernel_object)}
    found = [entry for entry in symbols if entry.kind in _DATA and entry.name in own]
    readable_names = _output(["c++filt"], "\n".join(entry.name for entry in found)).splitlines()
    result = []
    for entry, readable in zip(found, readable_names, strict=True):
        if readable.startswith(("host_", "guard variable")) or entry.name.startswith((".", "__odr_asan")):
            continue
        constant = entry.kind in "rR"
        kernel = next((owners[prefix] for prefix in owners if entry.name.startswith(prefix)), None)
        shared = entry.name.startswith("_ZZ") and not constant
        name = readable.rpartition("::")[2]
        result.append(Variable(name, entry.address, entry.bytes, shared, not constant, kernel))
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


def _prefix_of_locals(mangled: str) -> str:
    """What the names of a function's static variables start with. Source: Itanium C++ ABI, "Scope Encoding"."""
    encoding = mangled[2:] if mangled.startswith("_Z") else f"{len(mangled)}{mangled}"
    return f"_ZZ{encoding}E"


def _symbols(path: Path) -> list[_Symbol]:
    """The symbols that have a size."""
    symbols = []
    for line in _output(["nm", "-S", "--defined-only", str(path)]).splitlines():
        fields = line.split()
        if len(fields) == 4 and int(fields[1], 16) > 0:
            symbols.append(_Symbol(fields[3], fields[2], int(fields[0], 16), int(fields[1], 16)))
    return symbols


def _output(command: list[str], given: str | None = None) -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
