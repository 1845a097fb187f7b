"""The DIN experiment that is passed around: three ways to batch, with the figures that were published for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.bench.record import Record
from labkit.experiments.compare_rows import Compared, compared, scored_policy
from labkit.experiments.lineup import EdgesBy, Lineup
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.units import format_share

ROWS = 256
MAX_LENGTH = 512
#: Slots of the padded batch: what the dynamic batch may have too.
TOKEN_BUDGET = ROWS * MAX_LENGTH

#: Ratios that are within this share of each other are told as about the same.
_CLOSE = 0.25

#: What the description does not say, and what is done here in its place.
UNSAID = (
    "the GPU, and what utilization means there: here the share of the time in which a kernel runs",
    "the data: here the lengths of this notebook, cut to the most recent 512 events",
    f"the budget of the dynamic batch: here the {ROWS} x {MAX_LENGTH} = {TOKEN_BUDGET:,} slots of the padded batch",
    "how the 10 buckets were found: here by quantile_p95, as the 5",
    "sizes of the model: here 100 000 items, D = 32, attention MLP 80-40, head 80-40-1, SGD, float32",
    "whether time is an epoch's, and what memory counts: here an epoch, and most bytes of tensors in a step",
)


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of others. Their source names no device: they are neither measured nor recorded here.

    Attributes:
        relative_time: over that of the first way.
        utilization: a share.
        memory_bytes: GB are taken as 1e9.
    """

    relative_time: float
    utilization: float
    memory_bytes: float


@dataclass(frozen=True, eq=False, slots=True)
class DinWay:
    """One of the three ways, published and here.

    Attributes:
        title: in words.
        published: figures of others.
        here: the same way on our lengths.
    """

    title: str
    published: Published
    here: Compared


@dataclass(frozen=True, eq=False, slots=True)
class DinExperiment:
    """The three ways.

    Attributes:
        ways: in the order of the publication.
        choice: DIN and the GPU of the modelled figures.
    """

    ways: tuple[DinWay, ...]
    choice: ModelChoice

    def relative_model(self) -> list[float | None]:
        """Modelled time of each way over the first."""
        return _relative([way.here.modelled_time_s for way in self.ways])

    def relative_measured(self) -> list[float | None]:
        """Measured time of each way over the first."""
        return _relative([way.here.measured_time_s for way in self.ways])

    @property
    def finding(self) -> str:
        """Where theirs and ours differ, and why, in one sentence of the numbers."""
        ways = [way.here for way in self.ways]
        audits = [way.audit for way in ways if way.audit is not None]
        if len(audits) < len(ways):
            return f"The experiment does not fit these lengths: {next(way.error for way in ways if way.error)}"
        first, others = audits[0], audits[1:]
        told = listed([way.published.relative_time for way in self.ways[1:]])
        measured, device = self._measured
        times = {"modelled": (self.relative_model()[1:], self._gpu), measured: (self.relative_measured()[1:], device)}
        ours = [f"{listed(t)} {how} ({where})" for how, (t, where) in times.items() if None not in t]
        lost = max(audit.lost_share for audit in others) - first.lost_share
        slots, batches = ([getattr(a, name) / getattr(first, name) for a in others] for name in ("slots", "batches"))
        return (
            f"Published, the bucketed ways take {told} of the padded time; here "
            f"{'; '.join(ours) or 'no time is known'}. These histories leave {format_share(first.padding_ratio)} of "
            f"the padded way empty, so that the others have {listed(slots)} of its slots in {listed(batches)} of its "
            f"batches: {self._why(slots[0])}. {self._memory}Not published with them: the P95 widths lose "
            f"{format_share(lost)} of all events beyond those that the cap at {MAX_LENGTH} cuts."
        )

    def _why(self, slots: float) -> str:
        """What the slots of the second way say about its published time."""
        told = self.ways[1].published.relative_time
        if slots < (1 - _CLOSE) * told:
            return f"the published ratios tell of histories that fill {MAX_LENGTH} better, or of time beside the slots"
        if slots > (1 + _CLOSE) * told:
            return f"the published ratios tell of histories that are shorter against {MAX_LENGTH}"
        return "that is about what the published ratios tell of"

    @property
    def _memory(self) -> str:
        """How their memory compares with our peak."""
        first = self.ways[0]
        peak = None if first.here.modelled is None else first.here.modelled.figures["peak_bytes"].value
        if not peak:
            return ""
        times = first.published.memory_bytes / peak
        why = "which batches of this shape do not explain: a larger model, or all that the allocator reserves"
        return f"Their memory is {times:.2g} times our modelled peak{f', {why}' if times > 1 + _CLOSE else ''}. "

    @property
    def _measured(self) -> tuple[str, str]:
        """Measured or recorded, and on what."""
        records = [way.here.record for way in self.ways if way.here.record is not None and way.here.record.ok]
        if not records:
            return "measured", "nowhere"
        return str(records[0].provenance["epoch_s"]), records[0].device

    @property
    def _gpu(self) -> str:
        return "no GPU" if self.choice.gpu is None else self.choice.gpu.name


def din_policies(histogram: LengthHistogram) -> dict[str, BatchPolicy]:
    """The three ways on some lengths, by title.

    Raises:
        EdgesError: there are no such buckets.
    """
    return {
        "pad to 512": _lineup(1).policy(Strategy.PAD_RECENT, None),
        "5 buckets by quantile_p95, dynamic batch": _bucketed(Strategy.BUCKET_BUDGET, 5, histogram),
        "10 buckets, CUDA graph": _bucketed(Strategy.BUCKET_GRAPH, 10, histogram),
    }


PUBLISHED = (Published(1.0, 0.58, 11.2e9), Published(0.58, 0.82, 6.4e9), Published(0.47, 0.91, 5.8e9))


def din_experiment(
    histogram: LengthHistogram,
    lengths: NDArray[np.int64],
    choice: ModelChoice,
    seed: int,
    records: Mapping[BatchPolicy, Record] | None = None,
) -> DinExperiment:
    """The three ways: counted, modelled, and as they were measured.

    Args:
        histogram: of the lengths.
        lengths: (N,) in the order in which they are measured.
        choice: DIN, and the GPU.
        seed: of the plans.
        records: what was measured, by policy; None: nothing.

    Raises:
        EdgesError: there are no such buckets.
    """
    ways = [
        DinWay(title, told, compared(scored_policy(policy, histogram, choice), lengths, seed, records))
        for (title, policy), told in zip(din_policies(histogram).items(), PUBLISHED, strict=True)
    ]
    return DinExperiment(tuple(ways), choice)


def _lineup(buckets: int) -> Lineup:
    return Lineup(
        buckets=buckets,
        edges_by=EdgesBy.QUANTILE_P95,
        rows=ROWS,
        token_budget=TOKEN_BUDGET,
        max_length=MAX_LENGTH,
    )


def _bucketed(strategy: Strategy, buckets: int, histogram: LengthHistogram) -> BatchPolicy:
    lineup = _lineup(buckets)
    return lineup.policy(strategy, lineup.edges(histogram))


def _relative(times: list[float | None]) -> list[float | None]:
    base = times[0]
    return [None if time is None or not base else time / base for time in times]


def listed(shares: Sequence[float | None]) -> str:
    """Two digits that say something: ``0.58 and 0.031``."""
    return " and ".join(
        "no time" if share is None else f"{share:.2f}" if share >= 0.1 else f"{share:.2g}" for share in shares
    )
