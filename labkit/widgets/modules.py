"""JavaScript modules of a widget joined into the one module that anywidget takes: no bundler, no network."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./(?P<name>[\w.]+)\";\n", flags=re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const)", flags=re.MULTILINE)


def joined_modules(*names: str, folder: Path = _FOLDER) -> str:
    """The text of several modules as one, the last being the widget's own with its ``export default``.

    Imports of each other are dropped and the exports of all but the last become plain top-level names, which the
    modules must not share.

    Args:
        names: files of ``folder``, each importing only from those before it.
        folder: where they are.

    Raises:
        ImportError: an import of a module that is not among those before.
    """
    parts = []
    for position, name in enumerate(names):
        text = (folder / name).read_text(encoding="utf-8")
        for found in _IMPORT.finditer(text):
            if found["name"] not in names[:position]:
                raise ImportError(f"{name} imports {found['name']}, which is not joined before it: add it.")
        text = _IMPORT.sub("", text)
        if position + 1 < len(names):
            text = _EXPORT.sub("", text)
        if left := re.search(r"^import .*|^export (?!default).*", text, flags=re.MULTILINE):
            raise ImportError(f"{name} has a line that cannot be joined: {left[0]!r}.")
        parts.append(text)
    return "\n".join(parts)
