"""Room between the shared arrays of a kernel, so that an overrun from one into the next is out of bounds."""

from __future__ import annotations

import re

#: Bytes that belong to nobody behind each array.
GAP_BYTES = 1024

#: A ``__shared__`` variable as g++ writes it with ``-fdata-sections``: the label of a local static, then zeros.
_SHARED = re.compile(r"^(_ZZ\S+:\n\t\.zero\t\d+)$", re.MULTILINE)


def spaced(assembly: str) -> str:
    """The assembly with a gap behind each shared variable; their symbols keep their sizes."""
    return _SHARED.sub(rf"\1\n\t.zero\t{GAP_BYTES}", assembly)
