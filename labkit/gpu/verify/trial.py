"""A trial: an op called once on ragged input, and what it must give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """One result beside the reference.

    Attributes:
        what: ``"sums"``.
        found: of the kernels.
        expected: float64, or integers that must be equal.
        bound: how far from it the arithmetic may be, for all or for each; 0: equal.
    """

    what: str
    found: Tensor
    expected: Array
    bound: Array | float = 0.0

    @property
    def difference(self) -> str | None:
        """Where the result is wrong, in words; None where it is right. NaN must be where NaN is expected."""
        found = self.found.double().numpy()
        if found.shape != self.expected.shape:
            return f"{self.what}: expected shape {self.expected.shape}, got {found.shape}"
        with np.errstate(invalid="ignore"):  # equal infinities
            away = np.abs(found - self.expected) > self.bound
        nan = np.isnan(found) != np.isnan(self.expected)
        infinite = ~np.isfinite(self.expected) & ~np.isnan(self.expected) & (found != self.expected)
        wrong = np.argwhere(away | nan | infinite)
        if not len(wrong):
            return None
        first = tuple(int(i) for i in wrong[0])
        place = ", ".join(map(str, first))
        return (
            f"{self.what}: {len(wrong)} of {found.size} are wrong, first [{place}]: expected "
            f"{self.expected[first]:.9g}, got {found[first]:.9g}"
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """An op on one input.

    Attributes:
        name: what it tries: ``"sum, mixed rows, D=12"``.
        run: calls the CUDA implementation of the op, which launches on whatever stands in for a device.
        once: forward in the quick mode alone is enough: a size or a storage type, not another way through the kernel.
        sample: goes every way through the kernel on one input: for counts, the PTX and the sanitizers.
        host: needs memory that the CPU runner alone has (``labkit.gpu.verify.far``); not for a device.
    """

    name: str
    run: Callable[[], Iterator[Compared]]
    once: bool = False
    sample: bool = False
    host: bool = False
