"""The optimum beside what a person does: fewest slots for every number of edges, kept while the data stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from labkit.batching.edges import Edges, optimal_edges
from labkit.experiments.lineup import Lineup
from labkit.lengths.histogram import LengthHistogram

#: Cap, multiple of the widths, buckets.
_Key = tuple[int | None, int, int]
#: Settings that are remembered.
_KEPT = 64
#: Distinct lengths for which the edges of a number in use are found in a millisecond or two.
_QUICK = 1024


@dataclass(slots=True)
class OptimumCache:
    """Optimal edges under the settings of a lineup, each computed once.

    The settings used last are remembered, the oldest forgotten: a cap that is dragged passes through thousands.

    Attributes:
        most: edges that the curve goes up to.
    """

    most: int = 16
    _histogram: LengthHistogram | None = field(default=None, repr=False)
    _found: dict[_Key, Edges] = field(default_factory=dict, repr=False)

    def best(self, histogram: LengthHistogram, lineup: Lineup, buckets: int) -> Edges:
        """The optimal edges for at most so many buckets, with the curve up to ``most``.

        Cost: some milliseconds for thousands of distinct lengths, a third of a second for 65,000, the first time; a
        look-up afterwards.
        """
        if histogram is not self._histogram:
            self._histogram, self._found = histogram, {}
        curve = self._edges(histogram, lineup, self.most).curve
        found = self._edges(histogram, lineup, min(buckets, self.most))
        return Edges(found.edges, cost=found.cost, curve=curve, asked=buckets)

    def quick(self, histogram: LengthHistogram, lineup: Lineup, buckets: int) -> Edges | None:
        """What ``best`` finds, where it takes a few milliseconds at most, else None: for the path of a moving handle.

        The curve may end at ``buckets``.
        """
        is_same, used = histogram is self._histogram, min(buckets, self.most)
        if is_same and _key(lineup, self.most) in self._found and _key(lineup, used) in self._found:
            return self.best(histogram, lineup, buckets)
        if len(histogram.values) > _QUICK:
            return None
        if not is_same:
            self._histogram, self._found = histogram, {}
        found = self._edges(histogram, lineup, used)
        return Edges(found.edges, cost=found.cost, curve=found.curve, asked=buckets)

    def _edges(self, histogram: LengthHistogram, lineup: Lineup, buckets: int) -> Edges:
        key = _key(lineup, buckets)
        found = self._found.pop(key, None)
        if found is None:
            capped = histogram.capped(lineup.max_length)
            found = optimal_edges(capped, buckets, length_multiple=lineup.length_multiple)
        self._found[key] = found  # the newest comes last
        while len(self._found) > _KEPT:
            del self._found[next(iter(self._found))]
        return found


def _key(lineup: Lineup, buckets: int) -> _Key:
    return lineup.max_length, lineup.length_multiple, buckets


def elbow(curve: Sequence[float]) -> int:
    """The number of edges after which further ones save little: the point farthest below the chord of the curve.

        100 40 30 28 27 -> 2

    Args:
        curve: cost with at most 1, 2, ... edges, non-increasing.

    Returns:
        1 .. len(curve); 1 where nothing is saved.

    Source: V. Satopää et al., Finding a "Kneedle" in a Haystack, 2011, with both axes scaled to 0 .. 1.
    """
    first, last, steps = curve[0], curve[-1], len(curve) - 1
    if not steps or first <= last:
        return 1
    below = [(1 - k / steps) - (cost - last) / (first - last) for k, cost in enumerate(curve)]
    return below.index(max(below)) + 1
