"""What a machine behind a proxy, or with wheels on its disk, lends to a build; nothing of it enters the image."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.container.commands import run

_CERTIFICATES = Path("/etc/ssl/certs")
_KEYS = ("find-links", "index-url", "extra-index-url", "cert", "trusted-host")


@contextmanager
def lent_by_the_host() -> Iterator[list[str]]:
    """Options of the build: the certificates, and pip's own settings with the folders on this disk that they name."""
    settings = pip_settings()
    folders = [folder for text in settings.values() for folder in local_folders(text)]
    volumes = [_CERTIFICATES] if _CERTIFICATES.is_dir() else []
    with tempfile.TemporaryDirectory() as place:
        config = Path(place) / "pip.conf"
        config.write_text("[global]\n" + "".join(f"{key} = {text}\n" for key, text in settings.items()))
        options = [f"--volume={config}:/etc/pip.conf:ro"]
        options += [f"--volume={path}:{path}:ro" for path in dict.fromkeys([*volumes, *folders])]
        yield options


def pip_settings() -> dict[str, str]:
    """Where pip looks for packages on this machine, from its files and its environment."""
    listed = run([sys.executable, "-m", "pip", "config", "list"]).stdout
    found: dict[str, list[str]] = {}
    for line in listed.splitlines():
        name, _, quoted = line.partition("=")
        key = name.split(".")[-1]
        if key in _KEYS and (value := " ".join(shlex.split(quoted))):
            found.setdefault(key, []).append(value)
    return {key: " ".join(dict.fromkeys(values)) for key, values in found.items()}


def local_folders(text: str) -> list[Path]:
    """Folders of this disk among addresses."""
    paths = [Path(word.removeprefix("file://")) for word in text.split() if word.startswith(("/", "file:///"))]
    folders = [path if path.is_dir() else path.parent for path in paths if path.exists()]
    # an index lies one folder below the files that it names
    return [folder.parent if folder.name == "simple" else folder for folder in folders]
