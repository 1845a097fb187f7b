"""Row costs: what a padded row costs, by its width. Bucket edges are chosen to make their sum the least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.batching.edge_charges import checked_number
from labkit.batching.fields import whole_number
from labkit.errors import EdgesError
from labkit.lengths.validate import MAX_LENGTH

#: Cost of one row of a given width: (m,) int64 ascending -> (m,) non-decreasing.
RowCost = Callable[[NDArray[np.int64]], NDArray[Any]]

#: Of ``attention`` where none is given: a transformer 64 wide.
DEFAULT_ALPHA = 1 / (6 * 64)


def slots(widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """f(L) = L: the slots of the row, what embedding, projections and losses cost."""
    return widths


@dataclass(frozen=True, slots=True)
class Attention:
    """f(L) = L + alpha L**2, in slots. See ``attention``."""

    alpha: float

    def __call__(self, widths: NDArray[np.int64]) -> NDArray[Any]:
        """Price of one row of each width."""
        squares = np.asarray(widths, dtype=np.float64) ** 2
        return widths + self.alpha * squares


def attention(alpha: float = DEFAULT_ALPHA) -> Attention:
    """A row whose events all attend to each other: L + alpha L**2, in slots.

    alpha = 1 / (6 d) for transformer blocks of width d with a feed-forward part of 4 d: a slot costs 24 d**2 operations
    in its projections and 4 L d in the scores and their weighted sum. Narrow models have a high one.

    Raises:
        EdgesError: alpha is negative or not finite.
    """
    return Attention(checked_number("alpha", alpha))


@dataclass(frozen=True, slots=True)
class Tiled:
    """Slots rounded up to whole tiles. See ``tiled``."""

    multiple: int

    def __call__(self, widths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Price of one row of each width."""
        return -(-widths // self.multiple) * self.multiple


def tiled(multiple: int) -> Tiled:
    """A kernel that computes whole tiles: ceil(L / multiple) * multiple slots, while the data stays as wide as it is.

    Raises:
        PolicyError: a multiple below 1 or above 2**31 - 1.
    """
    return Tiled(whole_number("multiple", multiple, most=MAX_LENGTH))


@dataclass(frozen=True, slots=True)
class Table:
    """Measured prices at some lengths, straight lines between them. See ``table``."""

    lengths: tuple[int, ...]
    prices: tuple[float, ...]

    def __call__(self, widths: NDArray[np.int64]) -> NDArray[Any]:
        """Price of one row of each width; EdgesError above the last length of the table."""
        if widths.size and int(widths[-1]) > self.lengths[-1]:
            raise EdgesError(
                f"the table of prices ends at length {self.lengths[-1]}, and rows are up to {int(widths[-1])} wide: "
                "measure longer rows, or set max_length."
            )
        return np.interp(widths, self.lengths, self.prices)


def table(lengths: Sequence[int], prices: ArrayLike, *, smooth: bool = False) -> Table:
    """Prices that were measured, such as seconds a row: the unit is yours, and charges must have the same.

    Between two lengths the price is on the straight line; up to the first it is the first.

    Args:
        lengths: (n,) strictly increasing whole numbers, 1 or more; the last must reach the widest row.
        prices: (n,) finite numbers, 0 or more. They must not decrease: a row that is longer and cheaper is noise.
        smooth: replace what decreases by the closest prices, in least squares, that do not.

    Raises:
        EdgesError: no lengths, another number of prices, lengths out of order, a price that is negative or not finite,
            prices that decrease without ``smooth``; the message has the two numbers.

    Source: pool adjacent violators, Ayer et al., An Empirical Distribution Function for Sampling with Incomplete
        Information, 1955.
    """
    points = [whole_number(f"lengths[{i}]", v, most=MAX_LENGTH) for i, v in enumerate(lengths)]
    array = np.asarray(prices)
    if not points or array.shape != (len(points),) or array.dtype.kind not in "iuf":
        raise EdgesError(f"a table needs one price a length: got shape {array.shape} for {len(points)} lengths.")
    for low, high in pairwise(points):
        if high <= low:
            raise EdgesError(f"lengths of a table must be strictly increasing: {high} follows {low}. Sort them.")
    values = [float(checked_number(f"prices[{i}]", v)) for i, v in enumerate(array.tolist())]
    if smooth:
        values = _pooled(values)
    for i, (low_price, price) in enumerate(pairwise(values), start=1):
        if price < low_price:
            raise EdgesError(
                f"prices must not decrease: {low_price:g} at length {points[i - 1]}, {price:g} at {points[i]}. "
                "Measure again, or pass smooth=True."
            )
    return Table(tuple(points), tuple(values))


def _pooled(values: list[float]) -> list[float]:
    """The closest non-decreasing numbers: neighbours out of order become their mean."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]


def parse_cost(text: str) -> RowCost:
    """The row cost that a text names: ``slots``, ``attention`` or ``attention:ALPHA``.

    Raises:
        EdgesError: another name, or an alpha that is none.
    """
    name, colon, alpha = text.partition(":")
    if name == "slots" and not colon:
        return slots
    if name != "attention":
        raise EdgesError(f"edge cost {text!r} does not exist: use slots, attention or attention:ALPHA.")
    try:
        return attention(float(alpha)) if colon else attention()
    except ValueError:
        raise EdgesError(f"edge cost {text!r} has no alpha of 0 or more: write attention:0.01, for example.") from None


def row_costs(widths: NDArray[np.int64], cost: RowCost | None, sequences: int) -> NDArray[Any]:
    """Price of one row of each width, checked; float64 where a sum over ``sequences`` rows could leave int64."""
    if cost is None:
        return widths
    prices = np.asarray(cost(widths))
    if prices.shape != widths.shape:
        raise EdgesError(f"cost must give one price per length: got shape {prices.shape} for {widths.size} lengths.")
    if prices.dtype.kind not in "iuf" or not np.isfinite(prices).all() or (prices < 0).any():
        raise EdgesError("cost must give finite numbers of 0 or more.")
    falls = np.flatnonzero(prices[1:] < prices[:-1])
    if falls.size:
        i = int(falls[0])
        raise EdgesError(
            f"cost must not decrease with the length: {prices[i]} at length {widths[i]}, "
            f"{prices[i + 1]} at {widths[i + 1]}."
        )
    most = float(prices[-1]) * sequences
    if not np.isfinite(most):
        raise EdgesError(f"cost must give numbers whose sum is finite: got {prices[-1]} for {sequences} sequences.")
    return prices.astype(np.int64 if prices.dtype.kind in "iu" and most < 2.0**62 else np.float64)
