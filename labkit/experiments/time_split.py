"""TimeSplit: where the time of an epoch goes: useful work, padding, and time in which no work is done."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.experiments.compare_rows import Compared

MODELLED_IS = (
    "modelled: kernels run for real events (useful) and for padding (their time by its share of the slots); launch "
    "gap: no kernel runs"
)
MEASURED_ON_GPU_IS = (
    "measured: gap: no kernel runs (CUPTI); the rest by slots: useful is the share of the slots that hold an event"
)
MEASURED_ON_CPU_IS = (
    "measured: wait: the loop waits for its next batch (a CPU has no launch gap); the rest by slots: useful is the "
    "share of the slots that hold an event"
)


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Seconds of an epoch.

    Attributes:
        useful_s: work for real events.
        padding_s: work for padding.
        gap_s: no work: on a GPU no kernel runs; on a CPU the loop waits for its batch.
        what: what exactly each part is.
    """

    useful_s: float
    padding_s: float
    gap_s: float
    what: str

    @property
    def total_s(self) -> float:
        """The epoch."""
        return self.useful_s + self.padding_s + self.gap_s


def modelled_split(row: Compared) -> TimeSplit | None:
    """On the GPU that is modelled; None where there is no time."""
    if row.modelled is None:
        return None
    parts = [row.modelled.figures[name].value for name in ("useful_s", "padding_s", "gap_s")]
    useful, padding, gap = parts
    return None if useful is None or padding is None or gap is None else TimeSplit(useful, padding, gap, MODELLED_IS)


def measured_split(row: Compared) -> TimeSplit | None:
    """On the device that was measured; None where nothing was."""
    record = row.record
    if record is None or record.epoch_s is None or record.padding_ratio is None:
        return None
    gap, what = record.host_gap_share, MEASURED_ON_GPU_IS
    if gap is None:
        gap, what = record.loader_wait_share, MEASURED_ON_CPU_IS
    if gap is None:
        return None
    work = record.epoch_s * (1 - gap)
    return TimeSplit(work * (1 - record.padding_ratio), work * record.padding_ratio, record.epoch_s * gap, what)
