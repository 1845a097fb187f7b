"""NVTX ranges, so that a profiler shows which strategy and phase a kernel belongs to.

    labkit > bucket_graph > step > forward      nested: ncu's filter labkit/ takes all of it, bucket_graph/ one strategy

``nvtx_range`` opens the outer ranges of a step, ``nvtx_phase`` one inside of it: forward, backward, optimizer.
Where no profiler looks they cost next to nothing; where torch has no NVTX they do nothing, and say so once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

ROOT = "labkit"

_log = logging.getLogger(__name__)


@contextmanager
def nvtx_range(*names: str) -> Iterator[None]:
    """Put what is done inside into ``labkit > names[0] > names[1] ...``.

    Nested ranges rather than one name with slashes: a slash separates nested ranges in ncu's filters. Names must not
    hold one, nor the other signs of those filters.

    Args:
        *names: strategy, then ``step``.

    Raises:
        ValueError: a name with a sign that filters use.
    """
    with _nested((ROOT, *names)):
        yield


@contextmanager
def nvtx_phase(name: str) -> Iterator[None]:
    """Put what is done inside into a range of that name, within those that are open.

    Raises:
        ValueError: a name with a sign that filters use.
    """
    with _nested((name,)):
        yield


@contextmanager
def _nested(names: tuple[str, ...]) -> Iterator[None]:
    for name in names:
        if not name or set(name) & set("/@,[]*\\"):
            raise ValueError(
                f"a range is named by plain words, got {name!r}: / @ , [ ] * and \\ are signs of ncu's filters"
            )
    if not nvtx_is_there():
        yield
        return
    for name in names:
        torch.cuda.nvtx.range_push(name)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for _ in names:
            torch.cuda.nvtx.range_pop()  # type: ignore[no-untyped-call]


@cache
def nvtx_is_there() -> bool:
    """True where torch can mark ranges: a build with CUDA. Logs once where it cannot."""
    try:
        torch.cuda.nvtx.range_push(ROOT)  # type: ignore[no-untyped-call]
        torch.cuda.nvtx.range_pop()  # type: ignore[no-untyped-call]
    except RuntimeError:
        _log.info("NVTX ranges do nothing: torch %s is built without CUDA", torch.__version__)
        return False
    return True
