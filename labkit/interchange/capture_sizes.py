"""CUDA graph capture sizes, as vLLM has them.

    {"cudagraph_capture_sizes": [1, 2, 4, 8, 16]}     or the list alone, or inside "compilation_config"

A step of a server has a number of tokens; it runs in the graph of the smallest size that is not below it, padded up to
that size. What is above the largest size runs without a graph and is not padded. So here a *length* is the tokens of
one step, a *sequence* is one step, and the sizes are upper-inclusive edges whose width is the edge. (They do not bucket
the sequences of a batch.) vLLM keeps the list in either order; a falling one is turned round. ``compile_sizes`` are
something else: shapes to compile for, to which nothing is padded; they are refused.
"""

from __future__ import annotations

from typing import Any

from labkit.errors import DataFileError
from labkit.interchange.foreign import EdgeFormat, ForeignEdges
from labkit.interchange.json_lists import field_of, increasing, whole_numbers

_NAME = "cudagraph_capture_sizes"


def parse(data: Any, where: str) -> ForeignEdges:
    """Read the sizes of a JSON value.

    Raises:
        DataFileError: no sizes in it, or ``compile_sizes`` alone; EdgesError: unsorted, repeated, negative or
            fractional sizes.
    """
    if isinstance(data, dict) and isinstance(data.get("compilation_config"), dict):
        data = data["compilation_config"]
    if isinstance(data, dict) and data.get("compile_sizes") and data.get(_NAME) is None:
        raise DataFileError(
            f"{where}: compile_sizes are shapes to compile for, nothing is padded to them: give {_NAME!r}."
        )
    sizes = whole_numbers(field_of(data, (_NAME,), where, "capture sizes"), _NAME, where, unit="tokens")
    if len(sizes) > 1 and sizes[0] > sizes[-1]:
        sizes = sizes[::-1]
    return ForeignEdges(EdgeFormat.CAPTURE_SIZES, increasing(sizes, _NAME, where))


def content(widths: list[int]) -> dict[str, Any]:
    """The field of vLLM's compilation config: the distinct widths."""
    return {_NAME: sorted(set(widths))}
