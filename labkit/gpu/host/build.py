"""Builds the program of a kernel: its source, the shim and the runtime, kept in a cache by all that they depend on."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from labkit.errors import KernelCompileError
from labkit.gpu.host.program import Program
from labkit.gpu.host.signature import Parameter
from labkit.gpu.host.spacing import spaced
from labkit.gpu.host.symbols import Variable, variables
from labkit.gpu.host.toolchain import (
    Mode,
    assembler_command,
    kernel_command,
    link_command,
    program_key,
    runtime_command,
    runtime_key,
    runtime_sources,
)
from labkit.gpu.sources import kernel_text

#: Programs that a cache keeps, each of some 100 KiB.
MOST_PROGRAMS = 500

_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\d+\s*\)\s*)?([\w:]+(?:\s+[\w:]+)?)\s+(\w+)\s*\[\s*\]\s*;"
)
#: Of ``__PRETTY_FUNCTION__``: "constexpr const char* host_type_name() [with T = float]".
_TYPE_NAME = re.compile(r"\[with T = (.*)\]$")
_NAMES = "name expressions"  # what is appended to a source is called so in messages
_OPEN = re.compile(r"^(?P<place>[^\n:]*:\d+):\d+: note: to match this '(?P<text>.)'", re.MULTILINE)
_FIRST_ERROR = re.compile(r"^(?P<file>[^\n:]*):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)


def build(
    path: Path,
    name_expressions: Sequence[str],
    *,
    mode: Mode = Mode.FAST,
    options: Sequence[str] = (),
    source: str | None = None,
    cache: Path | None = None,
) -> Program:
    """The program of a kernel source.

    Args:
        path: the ``.cu`` file; it names the source in reports, and is read unless ``source`` is given.
        name_expressions: kernels to make callable: ``"copy_rows"``, ``"segment_pool<float, 4>"``.
        mode: what the program checks.
        options: macros, each ``-DNAME=value``.
        source: a changed text of that file.
        cache: folder of finished programs, by default ``cache_folder()``; the runtime is always there.

    Raises:
        KernelCompileError: g++ refuses the source, or a name expression is of no kernel.
        DataFileError: the file or a header of it is missing.
        MissingPackageError: no g++ here.

    Cost: about a second for each new source and mode on one core, milliseconds for one that was built before.
    """
    mode = Mode(mode)
    text = _dynamic_shared(kernel_text(path, source), path.name)
    names = tuple(dict.fromkeys(name_expressions))
    folder = cache or cache_folder()
    key = _digest(program_key(mode), text, *names, "options", *options)
    home = folder / key
    if not (home / "program.json").exists():
        _build_into(home, _translation_unit(text, names, mode), tuple(options), mode)
        _forget_oldest(folder)
    return _load(home, path.name, mode)


def cache_folder() -> Path:
    """Where finished programs are kept: ``$LABKIT_CACHE`` or the user's cache folder."""
    base = os.environ.get("LABKIT_CACHE")
    if base:
        return Path(base) / "host"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labkit" / "host"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def _dynamic_shared(text: str, name: str) -> str:
    """``extern __shared__ T s[];`` as a pointer to what the launch asks for; the line stays the line."""
    rewritten = _DYNAMIC_SHARED.sub(r"HOST_DYNAMIC_SHARED(\1, \2);", text)
    left = re.search(r"extern\s+__shared__[^;]*;", rewritten)
    if left:
        raise KernelCompileError(
            f"{name}: dynamic shared memory must be declared as 'extern __shared__ TYPE NAME[];', got {left[0]!r}."
        )
    return rewritten


def _translation_unit(text: str, names: Sequence[str], mode: Mode) -> str:
    entries = "\n".join(f'  HOST_KERNEL("{name}", {name}),' for name in names)
    table = f"extern const host_kernel host_kernels[] = {{\n{entries}\n  {{nullptr, nullptr, nullptr, nullptr}}}};"
    flag = f"extern const bool host_checked = {'true' if mode is Mode.CHECKED else 'false'};"
    return f'{text}\n#line 1 "{_NAMES}"\nextern "C" {{\n{table}\n{flag}\n}}\n'


def _runtime_objects(mode: Mode) -> list[Path]:
    """Object files of the runtime; compiled once for all programs, while others who need them wait."""
    home = cache_folder() / f"runtime-{_digest(runtime_key(mode))}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                with _working_folder(home) as work:
                    for source in runtime_sources():
                        _run(runtime_command(mode, source, work / f"{source.stem}.o"))
    return sorted(home.glob("*.o"))


def _build_into(home: Path, unit: str, options: tuple[str, ...], mode: Mode) -> None:
    with _working_folder(home) as work:
        source, kernel, program = work / "kernel.cpp", work / "kernel.o", work / "program"
        source.write_text(unit, encoding="utf-8")
        if mode is Mode.CHECKED:
            assembly = work / "kernel.s"
            _run(kernel_command(mode, options, source, assembly))
            assembly.write_text(spaced(assembly.read_text(encoding="utf-8")), encoding="utf-8")
            _run(assembler_command(assembly, kernel))
            assembly.unlink()
        else:
            _run(kernel_command(mode, options, source, kernel))
        _run(link_command(mode, [kernel, *_runtime_objects(mode)], program))
        kernels, addresses = _described(program)
        facts = {
            "kernels": {name: [asdict(entry) for entry in parameters] for name, parameters in kernels.items()},
            "variables": [asdict(variable) for variable in variables(program, kernel, addresses)],
        }
        kernel.unlink()
        (work / "program.json").write_text(json.dumps(facts), encoding="utf-8")


@contextmanager
def _working_folder(home: Path) -> Iterator[Path]:
    """A temporary folder beside ``home`` that becomes it in one step; another process may be first."""
    home.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=home.parent, prefix="building-"))
    try:
        yield work
        try:
            work.rename(home)
        except OSError:
            if not home.exists():  # else built meanwhile by another process: the same key, the same program
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _described(program: Path) -> tuple[dict[str, list[Parameter]], dict[str, int]]:
    """Parameters and address of each kernel."""
    kernels: dict[str, list[Parameter]] = {}
    addresses: dict[str, int] = {}
    name = ""
    for line in _run([str(program), "--describe"]).splitlines():
        kind, *fields = line.split("\t")
        if kind == "kernel":
            name = fields[0]
            kernels[name], addresses[name] = [], int(fields[1], 16)
        else:
            written, size, pointer, constant = fields
            kernels[name].append(Parameter(_TYPE_NAME.findall(written)[0], int(size), pointer == "1", constant == "1"))
    return kernels, addresses


def _forget_oldest(folder: Path) -> None:
    """Keeps the programs that were used last; an editor makes a new one with each change."""
    used: list[tuple[float, Path]] = []
    for path in folder.glob("*/program.json"):
        with suppress(FileNotFoundError):  # another process forgets too
            used.append((path.stat().st_mtime, path))
    for _, path in sorted(used)[: max(len(used) - MOST_PROGRAMS, 0)]:
        shutil.rmtree(path.parent, ignore_errors=True)


def _load(home: Path, name: str, mode: Mode) -> Program:
    facts = json.loads((home / "program.json").read_text(encoding="utf-8"))
    os.utime(home / "program.json")  # used now
    kernels = {name: tuple(Parameter(**entry) for entry in entries) for name, entries in facts["kernels"].items()}
    return Program(
        path=home / "program",
        source_name=name,
        mode=mode,
        kernels=kernels,
        variables=tuple(Variable(**entry) for entry in facts["variables"]),
    )


def _run(command: list[str]) -> str:
    environment = {**os.environ, "LC_ALL": "C", "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return done.stdout
    first = _FIRST_ERROR.search(done.stderr)
    reason = f"{first['file']}:{first['line']}: {first['text']}" if first else done.stderr.strip().partition("\n")[0]
    if first and first["file"] == _NAMES and (opened := _OPEN.search(done.stderr)):
        reason = f"{opened['place']}: this '{opened['text']}' is never closed"
    raise KernelCompileError(f"the CPU build of a kernel failed: {reason}", done.stderr)
