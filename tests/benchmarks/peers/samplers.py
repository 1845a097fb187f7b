"""What every sampler of the comparison looks like, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BUCKETS = 8
ROWS = 256
#: Above every sequence of the comparison.
BUDGET = 16_384


def _as_they_are(found: Any) -> Sequence[ArrayLike]:
    return found


@dataclass(frozen=True)
class Prepared:
    """A sampler that holds its lengths in the form it likes best.

    Attributes:
        plan: makes all batches of an epoch; this is timed.
        indices: of what ``plan`` returned, the indices batch by batch; this is not.
    """

    plan: Callable[[], Any]
    indices: Callable[[Any], Sequence[ArrayLike]] = _as_they_are


@dataclass(frozen=True)
class Sampler:
    """A sampler under a name.

    Attributes:
        name: for the table.
        own: True for labkit's.
        budgeted: True where ``BUDGET`` limits a batch, False where ``ROWS`` does.
        prepare: brings it to where an epoch can be planned.
    """

    name: str
    own: bool
    budgeted: bool
    prepare: Callable[[NDArray[np.int32]], Prepared]

    @property
    def limit(self) -> str:
        return f"{BUDGET:,} slots" if self.budgeted else f"{ROWS} rows"
