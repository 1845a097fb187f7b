"""Writing files whole: a reader sees the old content or the new, never a half, and a failure leaves nothing behind."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.errors import DataFileError


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there.

    Raises:
        DataFileError: its folder does not exist or is none, or the path is a folder.
    """
    target = Path(path)
    if not target.name or target.is_dir():
        raise DataFileError(f"{os.fspath(path)!r} is a folder: name a file in it.")
    if not target.parent.exists():
        raise DataFileError(
            f"folder {str(target.parent)!r} does not exist, so {target.name!r} cannot be written: create it first."
        )
    if not target.parent.is_dir():
        raise DataFileError(f"{str(target.parent)!r} is a file, not a folder: {target.name!r} cannot be written there.")
    return target


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name in the folder of ``path``; what is there when the block ends takes the place of ``path``.

    Raises:
        DataFileError: what ``check_target`` refuses, or a folder that cannot be written to.
    """
    target = check_target(path)
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.tmp{target.suffix}")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise DataFileError(f"cannot write {os.fspath(path)!r}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file whole, text as UTF-8, and return its path. Raises ``DataFileError`` as ``written_whole``."""
    with written_whole(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)
