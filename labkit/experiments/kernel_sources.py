"""The sources of an op as an editor shows them: the .cu file and the headers it includes, changed or not."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from labkit.errors import DataFileError, KernelLaunchError
from labkit.gpu.catalog import KERNELS, KernelSource, kernel_folder

_INCLUDE = re.compile(r'^#include "([\w.]+)"[ \t]*$', re.MULTILINE)


def kernel_source(op: str) -> KernelSource:
    """The entry of an op in the catalog.

    Raises:
        KernelLaunchError: there is no such op; the message lists them.
    """
    if op not in KERNELS:
        raise KernelLaunchError(f"there is no op {op!r}: expected one of {', '.join(KERNELS)}.")
    return KERNELS[op]


def shipped_sources(op: str) -> dict[str, str]:
    """Name to text of the files of an op as they are shipped: the .cu file, then its headers.

    Raises:
        KernelLaunchError: no such op; DataFileError: a file is missing.
    """
    main = kernel_source(op)
    text = _read(main.path)
    headers = dict.fromkeys(_INCLUDE.findall(text))
    return {main.file: text} | {name: _read(kernel_folder() / name) for name in headers}


def opened_sources(op: str, path: str | Path) -> dict[str, str]:
    """The same for a source of the user's, under the shipped names; headers beside it win over the shipped ones.

    Raises:
        KernelLaunchError: no such op; DataFileError: the file, or a header of it, is missing.
    """
    given = Path(path).expanduser()
    text = _read(given)
    beside = {name: given.parent / name for name in dict.fromkeys(_INCLUDE.findall(text))}
    headers = {name: at if at.is_file() else kernel_folder() / name for name, at in beside.items()}
    return {kernel_source(op).file: text} | {name: _read(at) for name, at in headers.items()}


@contextmanager
def sources_on_disk(op: str, sources: Mapping[str, str]) -> Iterator[Path]:
    """A folder with these texts, as long as the context lasts; the path of the .cu file in it.

    Headers that are not among them are found where the shipped ones are.
    """
    with tempfile.TemporaryDirectory(prefix="labkit-kernel-") as folder:
        for name, text in sources.items():
            (Path(folder) / Path(name).name).write_text(text, encoding="utf-8")
        yield Path(folder) / kernel_source(op).file


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise DataFileError(f"cannot read the kernel source {str(path)!r}: {reason}.") from None
