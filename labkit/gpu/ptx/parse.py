"""PTX text to kernels: instructions with their operands, registers, parameters, shared and local memory, source lines.

Only what NVRTC writes is read; names that inline assembly declares in a scope of its own (``{ .reg .pred p; … }``) are
made unique, so that after parsing a kernel is flat.

Source: PTX ISA 9.0, "Syntax" and "Directives".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from numpy.typing import NDArray

from labkit.errors import PtxUnsupportedError
from labkit.gpu.ptx.constants import global_variables
from labkit.gpu.ptx.opcode import BYTES, Opcode


@dataclass(frozen=True, slots=True)
class Line:
    """A place in the CUDA source, from ``.loc``; file "" where the PTX names none (no ``-lineinfo``)."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.file else "(no source line)"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: ``@!%p1 add.s32 %r1, %r2, 4``.

    Attributes:
        opcode: the name with its modifiers and types.
        operands: as written; a vector is one operand, with its braces.
        guard: the predicate register, or None.
        guard_negated: it runs where the predicate is false.
        line: where in the CUDA source it comes from.
    """

    opcode: Opcode
    operands: tuple[str, ...]
    guard: str | None
    guard_negated: bool
    line: Line

    def __str__(self) -> str:
        guard = "" if self.guard is None else f"@{'!' * self.guard_negated}{self.guard} "
        return f"{guard}{self.opcode} {', '.join(self.operands)}".rstrip()


@dataclass(slots=True)
class Kernel:
    """An entry function.

    Attributes:
        name: mangled.
        params: name to (offset is none: each stands alone) type, bytes, in order.
        registers: name to type; ranges ``%r<8>`` are in ``ranges``.
        ranges: prefix to (type, how many).
        shared: name of a shared array to its offset; the dynamic one begins after all static ones.
        shared_bytes: of the static arrays, with their alignment.
        local: name of a local array to its offset.
        local_bytes: of a thread.
        variables: ``__device__`` variables of its module, by name: one memory for all kernels, kept between launches.
        code: the instructions.
        labels: to the index of the instruction that follows.
        max_threads: of a block, from ``__launch_bounds__``; None where not given.
    """

    name: str
    params: dict[str, tuple[str, int]]
    registers: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[str, int]] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    local: dict[str, int] = field(default_factory=dict)
    local_bytes: int = 0
    variables: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    max_threads: int | None = None

    def register_type(self, name: str) -> str | None:
        """The declared type of a register, or None if there is no such register."""
        if name in self.registers:
            return self.registers[name]
        match = re.fullmatch(r"(%[a-zA-Z_]+)(\d+)", name)
        if match and match[1] in self.ranges:
            kind, size = self.ranges[match[1]]
            return kind if int(match[2]) < size else None
        return None


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?([^{]*)\{")
_MAX_THREADS = re.compile(r"\.(?:max|req)ntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.(?!align)\w+\s+)?(?:\.align\s+\d+\s+)?)?([\w$]+)(?:\[(\d+)\])?"
)
_ARRAY = re.compile(r"\.(shared|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)[^\n]*")
_REG = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_NEXT = re.compile(
    r"\s*(?:(?P<open>\{)|(?P<close>\})|(?P<loc>\.loc\b[^\n]*)|(?P<label>[\w$]+)\s*:(?!:)"
    r"|(?P<statement>[^;{}]+(?:\{[^{}]*\}[^;{}]*)*;))"
)
_STATEMENT = re.compile(
    r"(?:@(?P<not>!?)(?P<guard>%?[\w$]+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>.*)", re.DOTALL
)
_LABEL = re.compile(r"(?:^|[;{}\s])([A-Za-z_$][\w$]*)\s*:(?!:)")
_NAME = re.compile(r"%?[A-Za-z_$][\w$]*")


def parse(ptx: str) -> dict[str, Kernel]:
    """The kernels of a PTX text by their mangled names.

    Raises:
        PtxUnsupportedError: a statement that is not understood.

    Cost: about 1 s for 20 000 instructions.
    """
    text = _COMMENT.sub("", ptx)
    files = {int(number): path.rsplit("/", 1)[-1] for number, path in _FILE.findall(text)}
    kernels: dict[str, Kernel] = {}
    outside, bodies, done = [], [], 0
    for match in _ENTRY.finditer(text):
        end = _closing(text, match.end())
        outside.append(text[done : match.start()])
        bodies.append((match, text[match.end() : end]))
        done = end
    outside.append(text[done:])
    module_arrays = [m for m in _ARRAY.finditer("".join(outside)) if m[1] == "shared"]
    variables = global_variables("".join(outside))
    for match, body in bodies:
        kernel = Kernel(match[1], _params(match[2] or ""))
        if bounds := _MAX_THREADS.search(match[3]):
            kernel.max_threads = int(bounds[1]) * int(bounds[2] or 1) * int(bounds[3] or 1)
        _Body(kernel, files).read(body)
        _place_shared(kernel, module_arrays)
        names = {name for i in kernel.code for operand in i.operands for name in _NAME.findall(operand)}
        kernel.variables = {name: memory for name, memory in variables.items() if name in names}
        kernels[kernel.name] = kernel
    return kernels


def _closing(text: str, start: int) -> int:
    """The index of the brace that closes a body which begins at ``start``."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    raise PtxUnsupportedError(
        "the PTX ends inside a kernel: expected a closing brace, got the end of the text; is it cut off?"
    )


def _params(text: str) -> dict[str, tuple[str, int]]:
    return {m[2]: (m[1], BYTES[m[1]] * int(m[3] or 1)) for m in _PARAM.finditer(text)}


def _place_shared(kernel: Kernel, module_arrays: list[re.Match[str]]) -> None:
    """Give the shared arrays of the module their places behind those of the kernel; arrays without a size come last."""
    text = " ".join(" ".join(i.operands) for i in kernel.code)
    used = [m for m in module_arrays if re.search(rf"(?<![\w$]){re.escape(m[4])}(?![\w$])", text)]
    for match in [m for m in used if m[5] != ""]:
        _place(kernel, match)
    kernel.shared_bytes = -(-kernel.shared_bytes // 16) * 16 if any(m[5] == "" for m in used) else kernel.shared_bytes
    for match in [m for m in used if m[5] == ""]:
        kernel.shared[match[4]] = kernel.shared_bytes


def _place(kernel: Kernel, match: re.Match[str]) -> None:
    """Give a shared or local array its offset."""
    space, align, kind, name, size = match.groups()
    step = int(align or BYTES[kind])
    used = kernel.shared_bytes if space == "shared" else kernel.local_bytes
    offset = -(-used // step) * step
    end = offset + BYTES[kind] * int(size or 1)
    if space == "shared":
        kernel.shared[name], kernel.shared_bytes = offset, end
    else:
        kernel.local[name], kernel.local_bytes = offset, end


class _Body:
    """Reads the statements between the braces of a kernel."""

    def __init__(self, kernel: Kernel, files: dict[int, str]) -> None:
        self.kernel = kernel
        self.files = files
        self.line = Line("", 0)
        self.scopes: list[dict[str, str]] = []  # of inline assembly: name as written to unique name
        self.fresh = count()

    def read(self, body: str) -> None:
        for kind, text in _pieces(body):
            match kind:
                case "open":  # labels may be used before they come
                    self.scopes.append({label: f"{label}@{next(self.fresh)}" for label in _LABEL.findall(text)})
                case "close":
                    self.scopes.pop()
                case "loc":
                    # line 0 is code of the compiler's own; it stays with the line before
                    if (place := _LOC.match(text)) and place[2] != "0":
                        self.line = Line(self.files.get(int(place[1]), "?"), int(place[2]))
                case "label":
                    self.kernel.labels[self.rename(text)] = len(self.kernel.code)
                case _:
                    self.statement(text.rstrip(";").strip())

    def rename(self, operand: str) -> str:
        """The operand with the names of inner scopes made unique."""
        if not self.scopes:
            return operand
        known: dict[str, str] = {}
        for scope in self.scopes:
            known |= scope
        return _NAME.sub(lambda m: known.get(m[0], m[0]), operand)

    def statement(self, text: str) -> None:
        if match := _REG.match(text):
            self.declare(match[1], match[2])
        elif match := _ARRAY.match(text):
            _place(self.kernel, match)
        elif text.startswith(".pragma"):
            pass
        elif match := _STATEMENT.fullmatch(text):
            operands = tuple(self.rename(o) for o in _split(match["operands"]))
            guard = None if match["guard"] is None else self.rename(match["guard"])
            opcode = Opcode.of(match["opcode"])
            self.kernel.code.append(Instruction(opcode, operands, guard, match["not"] == "!", self.line))
        else:
            raise PtxUnsupportedError(f"{self.kernel.name}: {self.line}: not understood as PTX: {text[:80]!r}")

    def declare(self, kind: str, names: str) -> None:
        for name in (n.strip() for n in names.split(",")):
            if match := re.fullmatch(r"(%[a-zA-Z_]+)<(\d+)>", name):
                self.kernel.ranges[match[1]] = (kind, int(match[2]))
                continue
            unique = name
            if self.scopes:
                unique = self.scopes[-1][name] = f"{name}@{next(self.fresh)}"
            self.kernel.registers[unique] = kind


def _pieces(body: str) -> Iterator[tuple[str, str]]:
    """Cut a body into braces (an opening one with all that it encloses), ``.loc`` lines, labels and statements."""
    body, at = body.rstrip(), 0
    while at < len(body):
        match = _NEXT.match(body, at)
        if match is None or match.lastgroup is None:
            raise PtxUnsupportedError(f"not understood as PTX: {body[at : at + 80].strip()!r}")
        if match.lastgroup == "open":
            yield "open", body[match.end() : _closing(body, match.end())]
        else:
            yield match.lastgroup, match[match.lastgroup]
        at = match.end()


def _split(operands: str) -> list[str]:
    """Operands at the commas that are in no braces or brackets."""
    parts = re.split(r",(?![^{]*\})(?![^\[]*\])", operands)
    return [" ".join(p.split()) for p in parts if p.strip()]
