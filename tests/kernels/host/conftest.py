from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.gpu.host.build import build
from labkit.gpu.host.program import Program
from labkit.gpu.host.toolchain import Mode

HERE = Path(__file__).parent

#: Name expressions of the templates in programs.cu.
TEMPLATES = (
    "last_block_sums<true>",
    "last_block_sums<false>",
    "last_block_adds<true, true, false>",
    "last_block_adds<false, true, true>",
    "last_block_adds<true, true, true>",
    "last_block_adds<true, false, false>",
    "last_block_adds<true, false, true>",
    "last_block_adds<false, true, false>",
    "shared_into_the_next<32>",
)


def kernel_names(path: Path) -> tuple[str, ...]:
    """The kernels of a test source that are no templates."""
    return tuple(re.findall(r'^extern "C" __global__ void (\w+)\(', path.read_text(), flags=re.MULTILINE))


@functools.cache
def _built(name: str, mode: Mode, *templates: str) -> Program:
    path = HERE / name
    return build(path, (*kernel_names(path), *templates), mode=mode)


@pytest.fixture(scope="session")
def built() -> Callable[..., Program]:
    """``built("programs.cu", Mode.CHECKED, "template<int>")``: the program of a source beside this file."""
    return _built


def line_of(name: str, kernel: str, text: str) -> int:
    """The line of a test source at which ``text`` first stands at or after the kernel of that name."""
    lines = (HERE / name).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if re.search(rf"\b{kernel}\(", line))
    return next(i for i in range(start, len(lines)) if text in lines[i]) + 1
