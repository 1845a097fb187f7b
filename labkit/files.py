"""Files at the outside doors: what a path is, and writing whole, so that a reader sees the old content or the new.

Whatever the system refuses (no permission, a name too long) is one line of ours, never an ``OSError``.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from labkit.errors import DataFileError

_STEM_KEPT, _SUFFIX_KEPT = 40, 16  # characters: with what is added, within the 255 bytes that a name may have


class PathKind(StrEnum):
    """What lies at a path."""

    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"  # a pipe, a device


def kind_of(path: str | os.PathLike[str], *, verb: str = "read") -> PathKind | None:
    """What lies at a path, links followed; None where nothing does.

    Args:
        path: to look at.
        verb: what one wanted to do with it, for the message.

    Raises:
        DataFileError: the system does not let us look: no permission, a name too long, a name that is none.
    """
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise DataFileError(f"cannot {verb} {os.fspath(path)!r}: {reason_of(error)}.") from error
    if stat.S_ISDIR(mode):
        return PathKind.FOLDER
    return PathKind.FILE if stat.S_ISREG(mode) else PathKind.OTHER


def reason_of(error: OSError | ValueError) -> str:
    """Why the system refused, without its number and the path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def not_found(path: str | os.PathLike[str], what: str = "file not found:") -> DataFileError:
    """The error of a file that is not there; it names the folder from which the path was looked up."""
    try:
        here = f"from folder {str(Path.cwd())!r}"
    except OSError:
        here = "and the current folder, which is gone"
    return DataFileError(f"{what} {os.fspath(path)!r}. Check the path, {here}.")


def expanded(path: str | os.PathLike[str]) -> str:
    """The path with a leading ``~`` as the home folder, which a shell does not write for ``--out=~/x`` or a field."""
    name = os.fspath(path)
    return os.path.expanduser(name) if name.startswith("~") else name  # noqa: PTH111 - Path's raises without a home


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there.

    Raises:
        DataFileError: its folder does not exist or is none, the path is a folder, or the system lets us not look.
    """
    target = Path(path)
    if not target.name or kind_of(target, verb="write") is PathKind.FOLDER:
        raise DataFileError(f"{os.fspath(path)!r} is a folder: name a file in it.")
    folder = kind_of(target.parent, verb="write to")
    if folder is None:
        raise DataFileError(
            f"folder {str(target.parent)!r} does not exist, so {target.name!r} cannot be written: create it first."
        )
    if folder is not PathKind.FOLDER:
        raise DataFileError(f"{str(target.parent)!r} is a file, not a folder: {target.name!r} cannot be written there.")
    return target


def made_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, ``~`` being the home folder; it is made where only the last part of it is missing.

    Raises:
        DataFileError: it is a file, the folder above it is not there, or the system does not let us make it.
    """
    folder = Path(expanded(path))
    kind = kind_of(folder, verb="write to")
    if kind is PathKind.FOLDER:
        return folder
    if kind is not None:
        raise DataFileError(f"{os.fspath(path)!r} is a file, not a folder: choose another place.")
    if kind_of(folder.parent, verb="write to") is not PathKind.FOLDER:
        raise DataFileError(f"folder {str(folder.parent)!r} does not exist: create it, or choose another place.")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DataFileError(f"cannot make folder {str(folder)!r}: {reason_of(error)}.") from error
    return folder


def check_folder(path: str | os.PathLike[str], *, made_before: Path | None = None) -> Path:
    """The folder, if it is there and can be written to, or if ``made_folder`` could make it. Nothing is left behind.

    Args:
        path: of the folder.
        made_before: another folder that will be there by then, and those above it.

    Raises:
        DataFileError: as ``made_folder``, or a folder that cannot be written to.
    """
    folder = Path(expanded(path)).absolute()
    kind = kind_of(folder, verb="write to")
    if kind is not None and kind is not PathKind.FOLDER:
        raise DataFileError(f"{os.fspath(path)!r} is a file, not a folder: choose another place.")
    above = folder if kind is PathKind.FOLDER else folder.parent
    if kind_of(above, verb="write to") is not PathKind.FOLDER:
        coming = () if made_before is None else (made_before.absolute(), *made_before.absolute().parents)
        if above in coming or folder in coming:
            return folder
        raise DataFileError(f"folder {str(above)!r} does not exist: create it, or choose another place.")
    try:
        tempfile.TemporaryFile(dir=above).close()  # without a name, or under one for a moment
    except OSError as error:
        verb = "write to" if kind is PathKind.FOLDER else "make"
        raise DataFileError(f"cannot {verb} folder {os.fspath(path)!r}: {reason_of(error)}.") from error
    return folder


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name in the folder of ``path``; what is there when the block ends takes the place of ``path``.

    Raises:
        DataFileError: what ``check_target`` refuses, or a folder that cannot be written to.
    """
    target = check_target(path)
    temporary = target.with_name(_temporary_name(target))
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise DataFileError(f"cannot write {os.fspath(path)!r}: {reason_of(error)}.") from error
    finally:
        with suppress(OSError):  # where it could not be made, there is nothing to remove
            temporary.unlink()


def _temporary_name(target: Path) -> str:
    """Hidden, with the ending of the target, and never too long where the target's own name is not."""
    suffix = target.suffix if len(target.suffix) <= _SUFFIX_KEPT else ""
    return f".{target.stem[:_STEM_KEPT]}.{secrets.token_hex(4)}.tmp{suffix}"


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file whole, text as UTF-8, and return its path. Raises ``DataFileError`` as ``written_whole``."""
    with written_whole(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)
