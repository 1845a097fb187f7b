"""One instruction of a kernel, bound: what the schedule does with the lanes that stand at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from labkit.gpu.ptx.operands import Reader
from labkit.gpu.ptx.threads import Active, Threads

Array = NDArray[Any]
Effect = Callable[[Threads, Active], None]


class Kind(Enum):
    """How an instruction moves the lanes on."""

    PLAIN = "plain"  # to the next one
    BRANCH = "branch"
    LEAVE = "leave"
    WARP = "warp"  # once all lanes of the warp that its mask names are here
    BLOCK = "block"  # once all threads of the block that have not left are here


def _nothing(threads: Threads, active: Active) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Step:
    """A bound instruction.

    Attributes:
        kind: how it moves the lanes on.
        effect: what it does to registers and memory.
        target: index that a branch leads to.
        mask: the lanes that a warp-wide instruction names.
    """

    kind: Kind = Kind.PLAIN
    effect: Effect = _nothing
    target: int = -1
    mask: Reader | None = None
