"""The text of a kernel: its file with the headers beside it put in, so that one string is all that is compiled.

One self-contained text is what a cache can hash, what the CPU runner and NVRTC both take, and what an editor shows.
"""

from __future__ import annotations

import re
from pathlib import Path

from labkit.errors import DataFileError
from labkit.gpu.catalog import kernel_folder

_INCLUDE = re.compile(r'^#include "([\w.]+)"[ \t]*$', re.MULTILINE)


def kernel_text(path: Path, source: str | None = None) -> str:
    """The source of a kernel with each ``#include "name"`` replaced by that file.

    Lines keep their file and number (``#line``), so messages of compilers and checkers point at what was written. A
    header is looked for beside the source, then in the project's own folder of kernels; one that is nowhere is left to
    the compilers to complain about. Headers include nothing.

    Args:
        path: the ``.cu`` file; names it in ``#line``, and is read unless ``source`` is given.
        source: a changed text to be taken in its place.

    Raises:
        DataFileError: the file is missing, or it or a header of it is no UTF-8 text.
    """
    text = _read(path) if source is None else source
    pieces, done = [f'#line 1 "{path.name}"\n'], 0
    for match in _INCLUDE.finditer(text):
        header = _find(match[1], path)
        if not header.is_file():
            continue  # the line stays, and compilers say with its number that there is no such file
        following = text.count("\n", 0, match.end()) + 2
        inside = _read(header)
        ending = "" if inside.endswith("\n") else "\n"  # the next #line needs a line of its own
        pieces += [text[done : match.start()], f'#line 1 "{header.name}"\n', inside, ending]
        pieces.append(f'#line {following} "{path.name}"')
        done = match.end()
    return "".join([*pieces, text[done:]])


def kernel_files(path: Path) -> tuple[Path, ...]:
    """The files that ``kernel_text`` puts together: the source of a kernel and its headers."""
    return path, *(_find(match[1], path) for match in _INCLUDE.finditer(_read(path)))


def includes(text: str) -> bool:
    """Whether a header of ``kernel_text`` was found nowhere."""
    return _INCLUDE.search(text) is not None


def _find(name: str, path: Path) -> Path:
    beside = path.parent / name
    return beside if beside.is_file() else kernel_folder() / name


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataFileError(f"cannot read the kernel source {path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"cannot read the kernel source {path}: expected UTF-8 text, got byte {error.object[error.start]:#04x} at "
            f"{error.start}: name a .cu file."
        ) from None
    if "\0" in text:
        raise DataFileError(
            f"cannot read the kernel source {path}: expected text, got a zero byte at {text.index(chr(0))}: "
            "name a .cu file."
        )
    return text
